"""A view in the fragment of a resource's URI: without it, no read could ask for the rest.

`file:///x.log#view=text%5B0:2000%5D`: whoever reads a resource sends nothing but its URI (MCP:
Resources, Reading Resources). All that follows `view=` is the view, in the percent-encoding of
RFC 3986, section 3.5. A fragment that the server's URI has comes first: `note:1#top&view=help`.
"""

import re
from urllib.parse import quote, unquote

_VIEW = re.compile(r"[#&]view=")
_PLAIN = "/?:@!$&'(),;=*+"  # what a fragment may have beside letters, digits and -._~


def end_for(uri: str, view: str) -> str:
    """Return the end that a URI needs to ask for a view.

    >>> end_for("file:///x.log", "[?state=='new'].id"), end_for("note:1#top", "grep('é')")
    ("#view=%5B?state=='new'%5D.id", "&view=grep('%C3%A9')")
    """
    mark = "&" if "#" in uri else "#"
    return f"{mark}view={quote(view, safe=_PLAIN, errors='replace')}"


def split(uri: str) -> tuple[str, str | None]:
    """Return the server's own URI, and the view that is asked for; None if there is none.

    Models write views without escapes, too.

    >>> split("file:///x.log#view=text%5B0:2000%5D"), split("note:1#top&view=items[0]")
    (('file:///x.log', 'text[0:2000]'), ('note:1#top', 'items[0]'))
    >>> split("https://a/b?c&view=1#top")
    ('https://a/b?c&view=1#top', None)
    """
    fragment = uri.find("#")
    match = _VIEW.search(uri, fragment) if fragment >= 0 else None
    return (uri, None) if match is None else (uri[: match.start()], unquote(uri[match.end() :]))
