//! Models compiled by Tilewright, from safe Rust. Nothing but `std` and the runtime library is needed.

mod ffi;

use std::ffi::{c_char, c_void, CStr, CString};
use std::fmt;
use std::path::Path;
use std::ptr::{self, NonNull};

/// An error of the runtime or of a compiled function; `kind` is its class, such as "ValueError".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: String,
    pub message: String,
}

impl Error {
    fn new(kind: &str, message: impl Into<String>) -> Self {
        Error {
            kind: kind.into(),
            message: message.into(),
        }
    }

    /// The calling thread's error.
    fn last() -> Self {
        // Safety: each is NULL or a string that lives until this thread's next call of the runtime.
        unsafe {
            Error {
                kind: text(ffi::tilewright_error_kind()),
                message: text(ffi::tilewright_error_message()),
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    CStr::from_ptr(pointer).to_string_lossy().into_owned()
}

fn check(status: i32) -> Result<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(Error::last())
    }
}

fn c_string(value: &str) -> Result<CString> {
    CString::new(value)
        .map_err(|_| Error::new("ValueError", format!("{value:?} has a zero byte in it")))
}

/// A number that a tensor can hold.
///
/// # Safety
/// The data type must describe `Self`, and any bytes must be a valid value of it.
pub unsafe trait Element: Copy {
    const CODE: u8;
}

macro_rules! element {
    ($($type:ty: $code:expr),*) => { $(unsafe impl Element for $type { const CODE: u8 = $code; })* };
}
element!(i8: 0, i16: 0, i32: 0, i64: 0, u8: 1, u16: 1, u32: 1, u64: 1, f32: 2, f64: 2);

fn data_type<T: Element>() -> ffi::DataType {
    ffi::DataType {
        code: T::CODE,
        bits: 8 * std::mem::size_of::<T>() as u8,
        lanes: 1,
    }
}

/// A library of compiled functions. It stays loaded until the program ends.
#[derive(Clone, Copy)]
pub struct Module {
    library: NonNull<c_void>,
}

impl Module {
    /// Loads a library that `export_library` wrote.
    ///
    /// # Safety
    /// Loading a library runs its code: it must be one that is trusted.
    pub unsafe fn load(path: &Path) -> Result<Self> {
        let name = path
            .to_str()
            .ok_or_else(|| Error::new("ValueError", format!("{path:?} is not UTF-8")))?;
        let name = c_string(name)?;
        let library =
            NonNull::new(ffi::tilewright_library_open(name.as_ptr())).ok_or_else(Error::last)?;
        Ok(Module { library })
    }
}

/// A graph of a module's functions, with its memory and parameters.
pub struct GraphExecutor {
    graph: NonNull<ffi::Graph>,
}

// Safety: a graph is tied to no thread; what changes it takes `&mut self`.
unsafe impl Send for GraphExecutor {}

impl GraphExecutor {
    pub fn new(json: &str, module: &Module) -> Result<Self> {
        let mut graph = ptr::null_mut();
        // Safety: the text is read during the call; the library stays loaded.
        check(unsafe {
            ffi::tilewright_graph_create(
                json.as_ptr().cast(),
                json.len(),
                ffi::tilewright_library_function,
                module.library.as_ptr(),
                &mut graph,
            )
        })?;
        Ok(GraphExecutor {
            graph: NonNull::new(graph).ok_or_else(Error::last)?,
        })
    }

    /// Copies parameters, as `save_param_dict` wrote them, into the inputs of their names.
    pub fn load_params(&mut self, bytes: &[u8]) -> Result<()> {
        // Safety: the bytes are read during the call, and the runtime trusts nothing in them.
        check(unsafe {
            ffi::tilewright_graph_load_params(
                self.graph.as_ptr(),
                bytes.as_ptr().cast(),
                bytes.len(),
            )
        })
    }

    /// Copies values, in row-major order, into the input of a name.
    pub fn set_input<T: Element>(&mut self, name: &str, values: &[T], shape: &[i64]) -> Result<()> {
        let tensor = tensor_of(values, shape)?;
        let c_name = c_string(name)?;
        // Safety: the graph is alive, and the name ends with a zero byte.
        let index =
            unsafe { ffi::tilewright_graph_input_index(self.graph.as_ptr(), c_name.as_ptr()) };
        if index < 0 {
            return Err(Error::new(
                "ValueError",
                format!("the graph has no input {name}"),
            ));
        }
        // Safety: values and shape are only read, during the call, and hold as much as the tensor says.
        check(unsafe { ffi::tilewright_graph_set_input(self.graph.as_ptr(), index, &tensor) })
    }

    /// Runs every node once.
    pub fn run(&mut self) -> Result<()> {
        // Safety: the graph is alive, and nobody else uses it.
        check(unsafe { ffi::tilewright_graph_run(self.graph.as_ptr()) })
    }

    /// A copy of an output: its elements in row-major order and its shape.
    pub fn output<T: Element>(&self, index: usize) -> Result<(Vec<T>, Vec<i64>)> {
        let index = i32::try_from(index).unwrap_or(i32::MAX);
        let mut object = ptr::null_mut();
        // Safety: the graph is alive; the reference that the call gives is released below.
        check(unsafe { ffi::tilewright_graph_output(self.graph.as_ptr(), index, &mut object) })?;
        // Safety: the object is a tensor of the graph, which is compact and which no run changes meanwhile.
        unsafe {
            let copied = copy_of(&*ffi::tilewright_tensor_dltensor(object));
            ffi::tilewright_object_release(object);
            copied
        }
    }
}

impl Drop for GraphExecutor {
    fn drop(&mut self) {
        // Safety: this is the reference that `new` was given.
        unsafe { ffi::tilewright_graph_release(self.graph.as_ptr()) }
    }
}

/// An input or an output of a model: its name, and its shape, in which None is an open extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    pub name: String,
    pub shape: Vec<Option<i64>>,
}

/// A library with its model inside, used by the names of its inputs and outputs.
pub struct Session {
    session: NonNull<ffi::Session>,
}

// Safety: a session is tied to no thread; what changes it takes `&mut self`.
unsafe impl Send for Session {}

impl Session {
    /// Opens what `tilewright compile -o model.so` wrote.
    ///
    /// # Safety
    /// Loading a library runs its code: it must be one that is trusted.
    pub unsafe fn open(path: &Path) -> Result<Self> {
        let name = path
            .to_str()
            .ok_or_else(|| Error::new("ValueError", format!("{path:?} is not UTF-8")))?;
        let name = c_string(name)?;
        let session = NonNull::new(ffi::tilewright_open(name.as_ptr())).ok_or_else(Error::last)?;
        Ok(Session { session })
    }

    /// Another session of the same model, for another thread: it shares the parameters.
    pub fn try_clone(&self) -> Result<Self> {
        // Safety: the session is alive.
        let session = unsafe { ffi::tilewright_session_clone(self.session.as_ptr()) };
        Ok(Session {
            session: NonNull::new(session).ok_or_else(Error::last)?,
        })
    }

    /// The inputs that have to be set.
    pub fn inputs(&self) -> Vec<TensorInfo> {
        let session = self.session.as_ptr();
        // Safety: the session is alive, and has as many inputs.
        unsafe {
            (0..ffi::tilewright_session_num_inputs(session))
                .map(|index| info_of(&*ffi::tilewright_session_input_info(session, index)))
                .collect()
        }
    }

    pub fn outputs(&self) -> Vec<TensorInfo> {
        let session = self.session.as_ptr();
        // Safety: the session is alive, and has as many outputs.
        unsafe {
            (0..ffi::tilewright_session_num_outputs(session))
                .map(|index| info_of(&*ffi::tilewright_session_output_info(session, index)))
                .collect()
        }
    }

    /// Copies values, in row-major order, into the input of a name. A model with open extents takes any shape that its
    /// `inputs` allow, another one in every run.
    pub fn set_input<T: Element>(&mut self, name: &str, values: &[T], shape: &[i64]) -> Result<()> {
        let c_name = c_string(name)?;
        let tensor = tensor_of(values, shape)?;
        // Safety: values and shape are only read, during the call, and hold as much as the tensor says.
        check(unsafe {
            ffi::tilewright_session_set_tensor(self.session.as_ptr(), c_name.as_ptr(), &tensor)
        })
    }

    /// Runs the model.
    pub fn run(&mut self) -> Result<()> {
        // Safety: the session is alive, and nobody else uses it.
        check(unsafe { ffi::tilewright_session_run(self.session.as_ptr()) })
    }

    /// A copy of an output of the last run: its elements in row-major order and its shape.
    pub fn output<T: Element>(&self, name: &str) -> Result<(Vec<T>, Vec<i64>)> {
        let c_name = c_string(name)?;
        // Safety: the tensor lives until the next run, and is compact.
        unsafe {
            let tensor = ffi::tilewright_session_output(self.session.as_ptr(), c_name.as_ptr());
            copy_of(tensor.as_ref().ok_or_else(Error::last)?)
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Safety: nobody else has it.
        unsafe { ffi::tilewright_close(self.session.as_ptr()) }
    }
}

/// Safety: the description must be one of a session that is alive.
unsafe fn info_of(info: &ffi::TensorInfo) -> TensorInfo {
    let extents = (0..info.ndim as usize).map(|dimension| *info.shape.add(dimension));
    TensorInfo {
        name: text(info.name),
        shape: extents
            .map(|extent| (extent >= 0).then_some(extent))
            .collect(),
    }
}

/// A description of values that the caller keeps.
fn tensor_of<T: Element>(values: &[T], shape: &[i64]) -> Result<ffi::Tensor> {
    let count = shape
        .iter()
        .try_fold(1i64, |product, &extent| product.checked_mul(extent));
    if count != i64::try_from(values.len()).ok() || shape.iter().any(|&extent| extent < 0) {
        return Err(Error::new(
            "ValueError",
            format!("{} values do not fill the shape {shape:?}", values.len()),
        ));
    }
    Ok(ffi::Tensor {
        data: values.as_ptr().cast_mut().cast(),
        device: ffi::Device {
            device_type: ffi::DEVICE_CPU,
            device_id: 0,
        },
        ndim: shape.len() as i32,
        dtype: data_type::<T>(),
        shape: shape.as_ptr().cast_mut(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    })
}

/// Safety: the tensor must be alive and compact.
unsafe fn copy_of<T: Element>(tensor: &ffi::Tensor) -> Result<(Vec<T>, Vec<i64>)> {
    if tensor.dtype != data_type::<T>() {
        return Err(Error::new(
            "TypeError",
            format!(
                "the output's elements are of another type: {:?}",
                tensor.dtype
            ),
        ));
    }
    let shape: Vec<i64> = (0..tensor.ndim as usize)
        .map(|dimension| *tensor.shape.add(dimension))
        .collect();
    let count = shape.iter().product::<i64>() as usize;
    let first = tensor
        .data
        .cast::<u8>()
        .add(tensor.byte_offset as usize)
        .cast::<T>();
    Ok((std::slice::from_raw_parts(first, count).to_vec(), shape))
}
