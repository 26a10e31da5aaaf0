//! The part of `tilewright.h` that this crate uses, as it stands there.

use std::ffi::{c_char, c_void};

pub const DEVICE_CPU: i32 = 1;

/// What an object is, only the runtime knows.
#[repr(C)]
pub struct Object {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Graph {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Session {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Device {
    pub device_type: i32,
    pub device_id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

/// DLPack's tensor.
#[repr(C)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device: Device,
    pub ndim: i32,
    pub dtype: DataType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

#[repr(C)]
pub struct TensorInfo {
    pub name: *const c_char,
    pub dtype: DataType,
    pub ndim: i32,
    pub shape: *const i64,
}

pub type Find = unsafe extern "C" fn(context: *mut c_void, name: *const c_char) -> *mut Object;

extern "C" {
    pub fn tilewright_error_kind() -> *const c_char;
    pub fn tilewright_error_message() -> *const c_char;
    pub fn tilewright_object_release(object: *mut Object);
    pub fn tilewright_tensor_dltensor(tensor: *mut Object) -> *mut Tensor;
    pub fn tilewright_library_open(path: *const c_char) -> *mut c_void;
    pub fn tilewright_library_function(library: *mut c_void, name: *const c_char) -> *mut Object;
    pub fn tilewright_graph_create(
        json: *const c_char,
        size: usize,
        find: Find,
        context: *mut c_void,
        out: *mut *mut Graph,
    ) -> i32;
    pub fn tilewright_graph_release(graph: *mut Graph);
    pub fn tilewright_graph_input_index(graph: *const Graph, name: *const c_char) -> i32;
    pub fn tilewright_graph_set_input(graph: *mut Graph, index: i32, from: *const Tensor) -> i32;
    pub fn tilewright_graph_load_params(graph: *mut Graph, data: *const c_char, size: usize)
        -> i32;
    pub fn tilewright_graph_output(graph: *mut Graph, index: i32, out: *mut *mut Object) -> i32;
    pub fn tilewright_graph_run(graph: *mut Graph) -> i32;
    pub fn tilewright_open(path: *const c_char) -> *mut Session;
    pub fn tilewright_close(session: *mut Session);
    pub fn tilewright_session_clone(session: *mut Session) -> *mut Session;
    pub fn tilewright_session_num_inputs(session: *const Session) -> i32;
    pub fn tilewright_session_num_outputs(session: *const Session) -> i32;
    pub fn tilewright_session_input_info(session: *const Session, index: i32) -> *const TensorInfo;
    pub fn tilewright_session_output_info(session: *const Session, index: i32)
        -> *const TensorInfo;
    pub fn tilewright_session_set_tensor(
        session: *mut Session,
        name: *const c_char,
        tensor: *const Tensor,
    ) -> i32;
    pub fn tilewright_session_run(session: *mut Session) -> i32;
    pub fn tilewright_session_output(session: *mut Session, name: *const c_char) -> *const Tensor;
}
