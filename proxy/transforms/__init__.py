"""The table of transforms: the name in a rule file, and its class.

proxy/__init__.py says how to add one.
"""

from proxy.transforms.abridge import Abridge
from proxy.transforms.base import Transform
from proxy.transforms.clip import Clip
from proxy.transforms.drop import Drop
from proxy.transforms.elide import Elide
from proxy.transforms.filter import Filter
from proxy.transforms.jmespath import Jmespath
from proxy.transforms.keep import Keep
from proxy.transforms.paginate import Paginate
from proxy.transforms.parse import Parse
from proxy.transforms.project import Project
from proxy.transforms.prune import Prune
from proxy.transforms.recast import Recast
from proxy.transforms.rename import Rename
from proxy.transforms.replace import Replace
from proxy.transforms.sort import Sort
from proxy.transforms.table import Table
from proxy.transforms.truncate import Truncate

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
    "abridge": Abridge,
}
