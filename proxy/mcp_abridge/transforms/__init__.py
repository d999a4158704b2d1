"""The table of transforms: the name in a rule file, and its class.

CONTRIBUTING.md says how to add one.
"""

from mcp_abridge.transforms.abridge import AbridgeStep
from mcp_abridge.transforms.base import Transform
from mcp_abridge.transforms.clip import Clip
from mcp_abridge.transforms.drop import Drop
from mcp_abridge.transforms.elide import Elide
from mcp_abridge.transforms.filter import Filter
from mcp_abridge.transforms.jmespath import Jmespath
from mcp_abridge.transforms.keep import Keep
from mcp_abridge.transforms.paginate import Paginate
from mcp_abridge.transforms.parse import Parse
from mcp_abridge.transforms.project import Project
from mcp_abridge.transforms.prune import Prune
from mcp_abridge.transforms.recast import Recast
from mcp_abridge.transforms.rename import Rename
from mcp_abridge.transforms.replace import Replace
from mcp_abridge.transforms.sort import Sort
from mcp_abridge.transforms.table import Table
from mcp_abridge.transforms.truncate import Truncate

TRANSFORMS: dict[str, type[Transform]] = {
    "keep": Keep,
    "drop": Drop,
    "prune": Prune,
    "rename": Rename,
    "project": Project,
    "filter": Filter,
    "sort": Sort,
    "elide": Elide,
    "paginate": Paginate,
    "table": Table,
    "clip": Clip,
    "truncate": Truncate,
    "parse": Parse,
    "replace": Replace,
    "jmespath": Jmespath,
    "recast": Recast,
    "abridge": AbridgeStep,
}
