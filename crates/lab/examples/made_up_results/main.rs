//! Fills a store with made-up numbers and writes their report beside it, to see a complete report:
//!
//! `cargo run --release -p isogloss-lab --example made_up_results -- FOLDER`

mod numbers;

use std::path::Path;

use lab::report::ReportPage;
use lab::store::{FILE, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder for the store")?;
    let (records, notes) = numbers::all();
    Store::open(&Path::new(&folder).join(FILE))?.add(&records, &notes)?;
    std::fs::write(Path::new(&folder).join("report.html"), ReportPage::of(&records, &notes).html)?;
    println!("{} made-up numbers and {} notes in {folder}", records.len(), notes.len());
    Ok(())
}
