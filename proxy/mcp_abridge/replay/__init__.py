"""A session played without a server: the tests in rule files, recordings, and single answers.

exchanges    one recorded call and its answer
recordings   the sessions that `--record` has written, and other files of answers
play         such an exchange through a real session, with the calls that a page or view needs first
answers      an answer as a client shows it
account      what each step of a rule made of an answer
walk         all pages of an answer, put together again
differences  the differences of two documents
cases        the tests in rule files
filling      what such a test does not expect yet, filled in
choice       which rule applies to a call, and why the others do not
fit          how rules fit recorded answers
usage        which values of answers later calls have used
proof        whether a model still finds those

Production imports nothing from here: the verbs of `cli` do.
"""
