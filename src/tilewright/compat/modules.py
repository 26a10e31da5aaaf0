"""Where TVM's names are served from: the one table.

Module paths omit the package's name. A line ``"ir.transform": "Pass PassInfo"`` says that these names
are defined in ``tilewright.ir.transform``; ``TVMError=TilewrightError`` that the name has another one there, and ``*``
stands for all public names of the home.
"""

from __future__ import annotations

from typing import Final

MODULES: Final[dict[str, dict[str, str]]] = {
    "_ffi": {
        "compat.ffi": "DataTypeCode _init_api register_object",
        "runtime.device": "Device",
        "runtime.registry": "get_global_func list_global_func_names register_func remove_global_func",
        "support.dtype": "DataType",
        "support.errors": "register_error",
    },
    "_ffi.base": {
        "compat.ffi": "c_str integer_types numeric_types py_str string_types",
        "support.errors": "TVMError=TilewrightError register_error",
    },
    "_ffi.registry": {
        "compat.ffi": "_init_api extract_ext_funcs register_object",
        "runtime.packed_func": "register_extension",
        "runtime.registry": "get_global_func list_global_func_names register_func remove_global_func",
    },
    "_ffi.runtime_ctypes": {
        "compat.ffi": "ArgTypeCode DataTypeCode ObjectRValueRef TVMByteArray",
        "runtime.device": "Device",
        "runtime.library": "TVMArray=DLTensor",
        "support.dtype": "DataType",
    },
    "arith._ffi_api": {
        "arith": "*",
        "arith.inequalities": "SolveInequalitiesAsCondition=solve_inequalities_as_conditions",
        "tir.analysis": "DomainTouched=domain_touched",
    },
    "arith.int_solver": {
        "arith": (
            "IntConstraints IntConstraintsTransform IntGroupBounds solve_linear_equations solve_linear_inequalities"
        ),
    },
    "arith.iter_affine_map": {
        "arith": (
            "IterMapExpr IterMark IterSplitExpr IterSumExpr detect_iter_map inverse_affine_iter_map "
            "normalize_iter_map_to_expr subspace_divide"
        ),
    },
    "container": {
        "ir.container": "Array Map",
        "runtime.container": "ADT ShapeTuple String tuple_object",
    },
    "autotvm.measure.local_executor": {"autotvm.measure.executor": "LocalExecutor"},
    "auto_scheduler._ffi_api": {"compat.auto_scheduler_names": "*"},
    "contrib.cutlass": {
        "compat.cutlass": "build_cutlass_kernels build_cutlass_kernels_vm tune_cutlass_kernels",
    },
    "contrib.debugger.debug_runtime": {"contrib.debugger.debug_executor": "GraphModuleDebug create"},
    "contrib.graph_runtime": {"contrib.graph_executor": "GraphModule create get_device"},
    "contrib.pipeline_executor": {"relay.pipeline_executor": "*"},
    "script.highlight": {"support.terminal": "cprint"},
    "contrib.pipeline_executor_build": {"relay.pipeline_executor": "*"},
    "contrib.target": {},
    "contrib.target.vitis_ai": {"compat.absent_devices": "vitis_ai_available"},
    "contrib.target.onnx": {"relay.backend.onnx_export": "to_onnx"},
    "driver.build_module": {"compile": "OperatorModule build get_binds lower schedule_to_module"},
    "driver.tvmc.result_utils": {"compat.tvmc_results": "get_top_results"},
    "driver.tvmc.target": {
        "driver.tvmc.arguments": (
            "generate_target_args=add_target_arguments reconstruct_target_args=target_options"
        ),
        "driver.tvmc.targets": (
            "is_inline_json parse_target target_from_cli tokenize_target validate_targets"
        ),
    },
    "error": {
        "support.errors": (
            "CodegenError DiagnosticError ExpressionError InternalError LoweringError ModelError OpAttributeInvalid "
            "OpAttributeRequired OpAttributeUnImplemented OpError OpNotImplemented ParseError RPCError "
            "RPCSessionTimeoutError RuntimeFailure ScheduleError TVMError=TilewrightError TargetError TilewrightError "
            "VerifyError register_error"
        ),
    },
    "instrument": {
        "ir.instrument": (
            "PassInstrument PassPrintingInstrument PassTimingInstrument PrintAfterAll PrintBeforeAll pass_instrument"
        ),
    },
    "ir._ffi_api": {"ir": "*"},
    "meta_schedule.builder.local_builder": {
        "meta_schedule.builder.builder": "LocalBuilder T_BUILD T_EXPORT default_build default_export",
    },
    "meta_schedule.database.json_database": {"meta_schedule.database.database": "JSONDatabase"},
    "meta_schedule.search_strategy.replay_trace": {
        "meta_schedule.search_strategy.search_strategy": "ReplayTrace",
    },
    "meta_schedule.space_generator.schedule_fn": {
        "meta_schedule.space_generator.space_generator": "ScheduleFn",
    },
    "meta_schedule.space_generator.space_generator_union": {
        "meta_schedule.space_generator.space_generator": "SpaceGeneratorUnion",
    },
    "meta_schedule.task_scheduler.round_robin": {
        "meta_schedule.task_scheduler.task_scheduler": "RoundRobin",
    },
    "parser": {
        "relay.from_text": "fromtext parse parse_expr",
        "relay.parser": "SpanCheck",
    },
    "relay.analysis.analysis": {
        "relay.analysis": "*",
        "relay.transform.lib.extract_fused": "extract_fused_functions",
    },
    "relay.analysis._ffi_api": {"compat.type_solver": "_test_type_solver=TypeSolver"},
    "relay.base": {
        "relay.printer": "astext pretty_print",
        "support.node": "RelayNode=Object",
        "support.span": "SourceName Span",
    },
    "relay.backend.contrib.uma": {"relay.backend.byoc.uma": "*"},
    "relay.backend.contrib.uma.api": {},
    "relay.backend.contrib.uma.api.utils": {"relay.backend.byoc.uma": "PassPhase"},
    "relay.backend.contrib.uma.backend": {"relay.backend.byoc.uma": "UMABackend"},
    "relay.backend._backend": {"relay.backend.static_memory_plan": "GraphPlanMemory=graph_plan_memory"},
    "relay.backend.compile_engine": {
        "compat.te_compiler": "CCacheKey CCacheValue CachedFunc CompileEngine=TECompiler get",
        "relay.backend.implementation": "get_valid_implementations select_implementation",
        "relay.backend.te_compiler": "LoweredOutput get_shape lower_call",
    },
    "relay.frontend.change_datatype": {"compat.change_datatype": "ChangeDatatype"},
    "relay.frontend.mxnet_qnn_op_utils": {"compat.mxnet_quantization": "*"},
    "relay.frontend.tensorflow2": {"relay.frontend.tensorflow": "from_tensorflow"},
    "relay.frontend.tensorflow_parser": {"compat.tensorflow_parser": "TFParser"},
    "relay.frontend.paddlepaddle": {"relay.frontend.paddle": "from_paddle"},
    "relay.frontend.pytorch": {
        "compat.torch": "PyTorchOpConverter convert_params get_attr_chains get_use_chains",
        "relay.frontend.torch.script.model": "from_pytorch",
        "relay.frontend.torch.script.utilities": "get_all_op_names",
    },
    "relay.frontend.pytorch_utils": {
        "compat.torch.detection": (
            "rewrite_batched_nms_with_max_out_size rewrite_nms_to_batched_nms rewrite_scatter_to_gather"
        ),
        "relay.frontend.torch.script.utilities": "is_version_greater_than",
    },
    "relay.op._make": {
        "relay.op.algorithm": "*",
        "relay.op.reduce": "*",
        "relay.op.tensor": "*",
        "relay.op.transform": "*",
    },
    "relay.op.contrib.arm_compute_lib": {
        "compat.arm_compute_lib": (
            "is_arm_compute_runtime_enabled partition_for_arm_compute_lib "
            "arm_compute_lib_pattern_table=pattern_table"
        ),
    },
    "relay.op.contrib.bnns": {
        "compat.bnns": "partition_for_bnns pattern_table",
    },
    "relay.op.contrib.cutlass": {
        "compat.cutlass": (
            "check_batch_matmul check_gemm make_batch_matmul_pattern make_gelu_pattern make_gemm_pattern "
            "partition_for_cutlass pattern_table"
        ),
    },
    "relay.op.contrib.ethosn": {"compat.absent_devices": "Available ethosn_available"},
    "relay.op.contrib.tensorrt": {"compat.absent_devices": "is_tensorrt_runtime_enabled"},
    "relay.op.image.image": {"relay.op.image": "*"},
    "relay.op.image._make": {"relay.op.image": "*"},
    "relay.op.nn._make": {"relay.op.nn": "*"},
    "relay.op.random._make": {"relay.op.random": "*"},
    "relay.op.vision._make": {"relay.op.vision": "*"},
    "relay.op.nn.nn": {"relay.op.nn": "*"},
    "relay.qnn.op.qnn": {
        "relay.qnn.op": (
            "add batch_matmul concatenate conv2d conv2d_transpose dense dequantize mul quantize requantize "
            "simulated_dequantize simulated_quantize subtract"
        ),
    },
    "relay.param_dict": {"runtime.params": "load_param_dict save_param_dict"},
    "relay.quantize._calibrate": {"relay.quantize.calibrate": "calibrate collect_stats"},
    "relay.transform.infer_layout_utils": {"relay.op.layout_rules": "InferCorrectLayoutOutput=Layouts"},
    "relay.transform.mixed_precision": {"compat.mixed_precision": "*"},
    "relay.transform.transform": {"relay.transform": "*"},
    "relay.ty": {
        "ir.expr": "Any",
        "ir.tensor_type": "TensorType is_dynamic scalar_type",
        "ir.type": (
            "FuncType GlobalTypeVar IncompleteType RefType=RelayRefType RelayRefType ShapeVar TupleType Type TypeCall "
            "TypeConstraint TypeKind TypeVar"
        ),
        "ir.type_relation": "TypeRelation",
    },
    "rpc.server_ios_launcher": {
        "compat.ios_launcher": "RPCServerMode ServerIOSContextManager ServerIOSLauncher",
    },
    "runtime.object": {"support.node": "Object"},
    "runtime.object_generic": {
        "compat.ffi": "ObjectGeneric",
        "ir.convert": "convert convert_to_object=convert",
        "ir.operators": "const",
    },
    "target.codegen": {"target.llvm_version": "llvm_version_major"},
    "te.hybrid.runtime": {"te.hybrid.language": "HYBRID_GLOBALS=EMULATED max_num_threads"},
    "testing.autotvm": {
        "autotvm.testing": "DummyRunner bad_matmul get_sample_records get_sample_task matmul"
    },
    "testing.auto_scheduler": {"compat.auto_scheduler_workloads": "*"},
    "testing.utils": {"compat.absent_devices": "ethosn_available", "testing": "*"},
    "tir.analysis.analysis": {"tir.analysis": "*"},
    "tir.buffer": {
        "ir.buffer": "Buffer BufferRegion decl_buffer",
        "ir.expr": "DataProducer",
    },
    "tir.expr": {
        "compat.expressions": "IntImmEnum div_ambiguity_error",
        "ir.expr": "*",
        "ir.op": "CallEffectKind",
    },
    "tir.generic": {
        "compat.ffi": "cast",
        "ir.operators": "add divide=div floordiv multiply subtract",
    },
    "tir.stmt_functor": {"tir.functor": "ir_transform post_order_visit substitute"},
    "tir.transform.transform": {"tir.transform": "*"},
    "topi.cpp": {"topi": "*"},
    "topi.cpp.cuda": {"topi.cuda": "*"},
    "topi.cpp.generic": {"topi.generic": "*"},
    "topi.cpp.nn": {"topi.nn": "*"},
    "topi.cpp.utils": {"topi.utils": "*"},
    "topi.cpp.vision": {"topi.vision": "*"},
    "topi.cpp.x86": {"topi.x86": "*"},
    "topi.generic.conv2d": {
        "compat.workloads": "fallback_schedule_cpu_1x1_int8 fallback_schedule_cpu_common_int8",
    },
    "topi.scatter_add": {"topi": "scatter_add"},
    "topi.tensor": {"topi": "elemwise_sum full full_like"},
    "topi.testing.common": {"compat.testing_schedules": "*"},
    "topi.x86.tensor_intrin": {"compat.x86_tensor_intrin": "*"},
    "topi.transform": {
        "topi": (
            "adv_index arange auto_scheduler_layout_transform concatenate dyn_tile dynamic_strided_slice expand_dims "
            "expand_like flip gather gather_nd invert_permutation layout_transform matmul matrix_set_diag meshgrid "
            "ndarray_size one_hot repeat reshape reverse_sequence sequence_mask shape sliding_window sparse_to_dense "
            "split squeeze stack strided_set strided_slice take take_legalize tensordot tile transpose trilu "
            "unravel_index where"
        ),
    },
    "transform": {
        "ir.transform": "ModulePass Pass PassContext PassInfo PrintIR Sequential module_pass",
    },
}
"""Modules that TVM has and the core does not."""

NAMES: Final[dict[str, dict[str, str]]] = {
    "autotvm": {
        "autotvm.task.space": "FallbackConfigEntity",
        "autotvm.tuner": "GATuner GridSearchTuner RandomTuner XGBTuner",
    },
    "autotvm.measure.measure": {
        "autotvm.measure.measure_methods": "create_measure_batch measure_option",
    },
    "ir.attrs": {"ir.make_node": "make_node"},
    "ir.base": {
        "ir.env_func": "EnvFunc",
        "ir.serialize": "load_json save_json",
        "ir.structural": "assert_structural_equal structural_equal",
        "ir.structural_hash": "structural_hash",
        "support.span": "SourceName",
    },
    "ir.expr": {
        "ir.base": "BaseExpr RelayExpr",
        "ir.global_var": "GlobalVar",
    },
    "ir.type_relation": {"ir.type": "TypeCall"},
    "relay": {"ir.type": "TypeConstraint"},
    "relay.analysis": {"relay.transform.lib.extract_fused": "extract_fused_functions"},
    "relay.backend": {"relay.backend.options": "Executor Runtime"},
    "relay.backend.te_compiler": {
        "compat.te_compiler": "CCacheKey CCacheValue CachedFunc TECompiler get",
        "relay.backend.implementation": "get_valid_implementations select_implementation",
    },
    "relay.expr": {
        "relay.backend.static_memory_plan": "StaticMemoryPlan StorageInfo",
        "relay.expr_functor": "bind",
    },
    "relay.frontend": {"compat.mxnet_quantization": "quantize_conv_bias_mkldnn_from_var"},
    "relay.frontend.common": {"compat.frontend_common": "*"},
    "relay.frontend.onnx": {"compat.onnx": "*"},
    "relay.frontend.tensorflow": {"compat.tensorflow_graphs": "*"},
    "relay.frontend.tflite": {
        "compat.tflite_helpers": "*",
        "relay.frontend.tflite.converter": "TensorWrapper",
    },
    "relay.op": {"relay.plain_constants": "const"},
    "relay.quantize.quantize": {
        "relay.quantize.configuration": ("QAnnotateKind QConfig kind2str qconfig quantize_context"),
    },
    "relay.op.op": {"relay.op.annotation.debug": "debug"},
    "relay.testing": {"relay.testing.checking": "_np_randn_from_type=random_values"},
    "relay.transform": {"relay.op.layout_rules": "InferCorrectLayoutOutput=Layouts"},
    "rpc.client": {"rpc.tracker_session": "TrackerSession connect_tracker"},
    "runtime": {
        "compat.ffi": "DataTypeCode ObjectGeneric ObjectTypes",
        "ir.convert": "convert",
        "ir.operators": "const",
        "runtime.profiling": "Report",
    },
    "runtime.ndarray": {"runtime.device": "cl=opencl mtl=metal"},
    "runtime.module": {"runtime.loading": "enabled load_module system_lib"},
    "target.target": {
        "target.constructors": (
            "arm_cpu bifrost cuda hexagon intel_graphics mali micro rasp riscv_cpu rocm vta"
        ),
    },
    "te.operation": {
        "te.create_prim_func": "create_prim_func create_prim_func_from_outputs",
        "te.extern": "extern",
        "te.scan": "scan",
    },
    "te.schedule": {"ir.buffer": "Buffer"},
    "te.tensor": {
        "te.extern": "ExternOp",
        "te.hybrid.operation": "HybridOp",
        "te.operation": "BaseComputeOp ComputeOp PlaceholderOp",
        "te.scan": "ScanOp",
        "te.tensor_intrin": "TensorComputeOp TensorIntrinCall",
    },
    "support": {"compat.frontend_test_module": "FrontendTestModule"},
    "tir.op": {"tir.reducer": "comm_reducer"},
    "topi.nn.conv2d": {"compat.workloads": "Workload _get_workload=get_workload"},
    "topi.nn.sparse": {"auto_scheduler.sparse_inputs": "try_get_sparse_input"},
    "topi.nn.depthwise_conv2d": {
        "compat.workloads": "Workload _get_workload=get_depthwise_workload",
    },
    "topi.random": {"compat.wrapping": "threefry_test_wrapping"},
    "testing": {"compat.absent_devices": "ethosn_available"},
    "topi": {"topi.utils": "get_const_tuple"},
    "topi.image.resize": {"compat.resize_pixels": "*"},
    "topi.testing": {"compat.testing_schedules": "*"},
    "topi.vision.nms": {
        "compat.vision_kernels": (
            "hybrid_get_valid_counts hybrid_nms hybrid_rearrange_box_out hybrid_rearrange_indices_out"
        ),
    },
    "topi.vision.ssd.multibox": {
        "compat.vision_kernels": "hybrid_multibox_prior hybrid_multibox_transform_loc",
    },
}
"""Names that TVM and the core have in different modules, both of which exist in the core."""
