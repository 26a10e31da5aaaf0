//! Runs the model of make_model.py from Rust.   deploy FOLDER

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use tilewright::{GraphExecutor, Module};

const TOLERANCE: f64 = 1e-5;
const INPUT_SHAPE: [i64; 2] = [4, 64];

fn read(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()).into())
}

fn floats(path: &Path) -> Result<Vec<f32>, Box<dyn Error>> {
    Ok(read(path)?
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect())
}

fn run(folder: &Path) -> Result<bool, Box<dyn Error>> {
    // Safety: the library is the one that make_model.py wrote.
    let module = unsafe { Module::load(&folder.join("model.so"))? };
    let json = String::from_utf8(read(&folder.join("graph.json"))?)?;
    let mut graph = GraphExecutor::new(&json, &module)?;
    graph.load_params(&read(&folder.join("params.bin"))?)?;
    graph.set_input("x", &floats(&folder.join("input.bin"))?, &INPUT_SHAPE)?;
    graph.run()?;
    let (values, shape) = graph.output::<f32>(0)?;

    let expected = floats(&folder.join("expected.bin"))?;
    if expected.len() != values.len() {
        return Err("expected.bin is of another length than the output".into());
    }
    let differences: Vec<f64> = values
        .iter()
        .zip(&expected)
        .map(|(a, b)| f64::from((a - b).abs()))
        .collect();
    let classes: Vec<String> = values
        .chunks(shape[1] as usize)
        .map(|scores| {
            let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
            best.unwrap_or(0).to_string()
        })
        .collect();
    println!("prediction: {}", classes.join(" "));
    println!(
        "largest difference: {:.2e}",
        differences.iter().copied().fold(0.0, f64::max)
    );
    Ok(differences
        .iter()
        .all(|difference| *difference <= TOLERANCE)) // not true of NaN either
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().collect();
    let [_, folder] = arguments.as_slice() else {
        eprintln!("usage: deploy FOLDER");
        return ExitCode::from(2);
    };
    match run(Path::new(folder)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
