//! Fills a store with numbers that nobody measured, to see what a full report looks like:
//!
//! `cargo run --release -p isogloss-lab --example made_up_results -- FOLDER`

mod numbers;

use std::path::Path;

use lab::store::{FILE, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder for the store")?;
    let (records, notes) = numbers::all();
    Store::open(&Path::new(&folder).join(FILE))?.add(&records, &notes)?;
    println!("{} made-up numbers and {} notes in {folder}", records.len(), notes.len());
    Ok(())
}
