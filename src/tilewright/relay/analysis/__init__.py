"""Analyses of graph-level programs: their variables, form, features, cost, calls and regions."""

from tilewright.relay.analysis import annotated_regions, call_graph
from tilewright.relay.analysis.annotated_regions import AnnotatedRegion, AnnotatedRegionSet
from tilewright.relay.analysis.blocks import check_basic_block_normal_form
from tilewright.relay.analysis.calibration import get_calibration_data
from tilewright.relay.analysis.call_graph import CallGraph
from tilewright.relay.analysis.count_layers import LayerCounter, count_layers
from tilewright.relay.analysis.extract import (
    all_dtypes,
    check_constant,
    list_op_freqs,
    search_fc_transpose,
)
from tilewright.relay.analysis.feature import Feature, detect_feature, is_atomic
from tilewright.relay.analysis.kind import KindError, check_kind
from tilewright.relay.analysis.mac_count import get_total_mac_number
from tilewright.relay.analysis.type_variables import all_type_vars, bound_type_vars, free_type_vars
from tilewright.relay.analysis.unmatched_cases import unmatched_cases
from tilewright.relay.analysis.variables import all_vars, bound_vars, free_vars
from tilewright.relay.analysis.well_formed import verify, verify_module, well_formed
from tilewright.relay.expr_functor import post_order_visit
