//! Runs the model of make_open_model.py, whose sizes are open, from Rust.   open_sizes FOLDER

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use tilewright::{Session, TensorInfo};

const TOLERANCE: f64 = 1e-5;
const SIZES: [[i64; 2]; 3] = [[2, 5], [1, 9], [3, 1]]; // sentences, and words of each

fn read(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()).into())
}

/// "tokens [?, ?]": an extent of None is open.
fn describe(what: &str, info: &TensorInfo) {
    let extents: Vec<String> = info
        .shape
        .iter()
        .map(|extent| extent.map_or("?".into(), |size| size.to_string()))
        .collect();
    println!("{what} {} [{}]", info.name, extents.join(", "));
}

/// Runs the model on one batch and prints the class of each sentence; the largest difference from what is expected.
fn run(session: &mut Session, folder: &Path, size: [i64; 2]) -> Result<f64, Box<dyn Error>> {
    let [sentences, length] = size;
    let tokens: Vec<i64> = read(&folder.join(format!("tokens_{sentences}x{length}.bin")))?
        .chunks_exact(8)
        .map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    let expected: Vec<f32> = read(&folder.join(format!("expected_{sentences}x{length}.bin")))?
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    session.set_input("tokens", &tokens, &size)?;
    session.run()?;
    let (values, shape) = session.output::<f32>("probabilities")?;
    if shape[0] != sentences || values.len() != expected.len() {
        return Err("the output has another size than expected".into());
    }
    let classes: Vec<String> = values
        .chunks(shape[1] as usize)
        .map(|scores| {
            let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
            best.unwrap_or(0).to_string()
        })
        .collect();
    println!("{sentences} x {length}: {}", classes.join(" "));
    let differences = values
        .iter()
        .zip(&expected)
        .map(|(a, b)| f64::from((a - b).abs()));
    Ok(differences.fold(0.0, larger))
}

/// The larger of two; NaN is larger than any number.
fn larger(first: f64, second: f64) -> f64 {
    if first.is_nan() || second <= first {
        first
    } else {
        second
    }
}

fn run_all(folder: &Path) -> Result<bool, Box<dyn Error>> {
    // Safety: the library is the one that make_open_model.py wrote.
    let mut session = unsafe { Session::open(&folder.join("open.so"))? };
    for info in session.inputs() {
        describe("input", &info);
    }
    for info in session.outputs() {
        describe("output", &info);
    }
    let mut most = 0.0;
    for size in SIZES {
        most = larger(most, run(&mut session, folder, size)?);
    }
    println!("largest difference: {most:.2e}");
    Ok(most <= TOLERANCE)
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().collect();
    let [_, folder] = arguments.as_slice() else {
        eprintln!("usage: open_sizes FOLDER");
        return ExitCode::from(2);
    };
    match run_all(Path::new(folder)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
