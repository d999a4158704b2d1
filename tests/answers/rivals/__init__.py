"""Other products in front of the same server, each pinned, and installed when first asked for.

Each arm makes the best use of what its product offers, as a reader would that has read the
descriptions of its tools. What varies from run to run in an answer is made the same before it is
counted: times, and the ids of handles.
"""

from tests.answers.arm import Arm
from tests.answers.rivals.ctxtual import Ctxtual
from tests.answers.rivals.encoders import Compressor, Terse, UltraLean
from tests.answers.rivals.jmunch import Jmunch


def rivals() -> list[Arm]:
    return [Ctxtual(), Jmunch(), Compressor(), Terse(), UltraLean()]
