//! Bilingual dictionaries with quality weights from PanLex (Kamholz et al. 2014), as Conneau et al. 2020
//! take them for extra anchors.
//!
//! A snapshot of the database is an archive of tables in CSV: language varieties, expressions (words) of a
//! variety, meanings of a source, and denotations, which give an expression a meaning. Two expressions that
//! share a meaning translate each other, attested by the meaning's source, which editors gave a quality from
//! 0 to 9. A translation's weight is the sum of the qualities of the sources that attest it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use files::At;
use terms::iso639_3;

use crate::convert::LineCounts;
use crate::error::{Error, Result};
use crate::unpack::{self, damaged};

/// The most translations that one meaning may attest.
const MOST_TRANSLATIONS: usize = 1 << 20;

/// Writes the dictionary from English to a language, made of a snapshot: `word⇥translation⇥weight`, by word
/// and falling weight. Translations that only sources of quality 0 attest are left out.
pub(crate) fn dictionary(
    archive: &Path,
    language: &str,
    to: &Path,
    writer: &mut dyn Write,
) -> Result<LineCounts> {
    let codes = ["eng", iso639_3(language)];
    let varieties = varieties(archive, codes)?;
    let expressions = expressions(archive, &varieties)?;
    let meanings = meanings(archive, &expressions)?;
    let sources = sources(archive, &meanings)?;
    let mut attested: BTreeMap<(&str, &str), HashMap<u64, f64>> = BTreeMap::new();
    for (meaning, [english, other]) in &meanings {
        let Some(&(source, quality)) = sources.get(meaning) else { continue };
        if english.len().saturating_mul(other.len()) > MOST_TRANSLATIONS {
            let (a, b) = (english.len(), other.len());
            let reason =
                format!("says that {a} words of one language mean the same as {b} of another");
            return Err(Error::file(
                archive,
                reason,
                "give a snapshot of PanLex's database as CSV",
            ));
        }
        for a in english {
            for b in other {
                let pair = (expressions[a].1.as_str(), expressions[b].1.as_str());
                attested.entry(pair).or_default().insert(source, quality);
            }
        }
    }
    let (mut kept, mut left_out) = (0, 0);
    let mut entries: Vec<((&str, &str), f64)> =
        attested.into_iter().map(|(pair, sources)| (pair, sources.values().sum())).collect();
    entries.sort_by(|(a, heavy), (b, light)| {
        a.0.cmp(b.0).then(light.total_cmp(heavy)).then(a.1.cmp(b.1))
    });
    for ((word, translation), weight) in entries {
        if weight <= 0.0 {
            left_out += 1;
            continue;
        }
        kept += 1;
        writeln!(writer, "{word}\t{translation}\t{weight}").at(to, "write")?;
    }
    match kept {
        0 => {
            let reason = format!("holds no translation between `{}` and `{}`", codes[0], codes[1]);
            Err(Error::file(archive, reason, "ask for a language that it has"))
        }
        _ => Ok(Some([kept, left_out])),
    }
}

/// The side (0 is English) of every language variety of the two languages.
fn varieties(archive: &Path, codes: [&str; 2]) -> Result<HashMap<u64, usize>> {
    let mut varieties = HashMap::new();
    each_row(archive, "langvar.csv", ["id", "lang_code"], |[id, code]| {
        if let Some(side) = codes.iter().position(|known| *known == code) {
            varieties.insert(number(id)?, side);
        }
        Some(())
    })?;
    Ok(varieties)
}

/// The side and the text of every expression of these varieties.
fn expressions(
    archive: &Path,
    varieties: &HashMap<u64, usize>,
) -> Result<HashMap<u64, (usize, String)>> {
    let mut expressions = HashMap::new();
    each_row(archive, "expr.csv", ["id", "langvar", "txt"], |[id, variety, text]| {
        if let Some(&side) = varieties.get(&number(variety)?) {
            let text = text.replace(['\t', '\n', '\r'], " ").trim().to_owned();
            if !text.is_empty() {
                expressions.insert(number(id)?, (side, text));
            }
        }
        Some(())
    })?;
    Ok(expressions)
}

/// The expressions of either side that have a meaning, where both sides have it.
fn meanings(
    archive: &Path,
    expressions: &HashMap<u64, (usize, String)>,
) -> Result<BTreeMap<u64, [Vec<u64>; 2]>> {
    let mut meanings: BTreeMap<u64, [Vec<u64>; 2]> = BTreeMap::new();
    each_row(archive, "denotation.csv", ["meaning", "expr"], |[meaning, expression]| {
        let expression = number(expression)?;
        if let Some((side, _)) = expressions.get(&expression) {
            meanings.entry(number(meaning)?).or_default()[*side].push(expression);
        }
        Some(())
    })?;
    meanings.retain(|_, sides| sides.iter().all(|side| !side.is_empty()));
    Ok(meanings)
}

/// The source of each of these meanings, and its quality.
fn sources(
    archive: &Path,
    meanings: &BTreeMap<u64, [Vec<u64>; 2]>,
) -> Result<HashMap<u64, (u64, f64)>> {
    let mut of_meaning = HashMap::new();
    each_row(archive, "meaning.csv", ["id", "source"], |[id, source]| {
        let id = number(id)?;
        if meanings.contains_key(&id) {
            of_meaning.insert(id, number(source)?);
        }
        Some(())
    })?;
    let wanted: HashSet<u64> = of_meaning.values().copied().collect();
    let mut qualities = HashMap::new();
    each_row(archive, "source.csv", ["id", "quality"], |[id, quality]| {
        let id = number(id)?;
        if wanted.contains(&id) {
            // A source that nobody judged has none.
            let quality = if quality.is_empty() { 0.0 } else { quality.parse().ok()? };
            qualities.insert(id, quality);
        }
        Some(())
    })?;
    let quality =
        |(meaning, source): (u64, u64)| Some((meaning, (source, *qualities.get(&source)?)));
    Ok(of_meaning.into_iter().filter_map(quality).collect())
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Calls `each` with some columns of every row of a table; none says that a row is not what it should be.
fn each_row<const N: usize>(
    archive: &Path,
    table: &str,
    columns: [&str; N],
    mut each: impl FnMut([&str; N]) -> Option<()>,
) -> Result<()> {
    const REMEDY: &str = "give a snapshot of PanLex's database as CSV";
    unpack::open(archive, Some(table), &mut |reader, place| {
        let mut rows = CsvRows { reader: BufReader::with_capacity(1 << 16, reader), line: 0 };
        let mut read = |row: &mut Vec<String>| {
            rows.next(row).map(|more| more.then_some(rows.line)).map_err(|e| damaged(place, &e))
        };
        let mut row = Vec::new();
        read(&mut row)?;
        let mut places = [0; N];
        for (place_of, column) in places.iter_mut().zip(columns) {
            *place_of = row
                .iter()
                .position(|name| name == column)
                .ok_or_else(|| Error::file(place, format!("has no column `{column}`"), REMEDY))?;
        }
        while let Some(line) = read(&mut row)? {
            let values = places.map(|at| row.get(at).map(String::as_str));
            let done = match values.iter().all(Option::is_some) {
                true => each(values.map(Option::unwrap_or_default)),
                false => None,
            };
            done.ok_or_else(|| Error::line(place, line, "is no row of this table", REMEDY))?;
        }
        Ok(())
    })
}

/// The longest row of a table; a quotation mark too many would make one row of the rest.
const LONGEST_ROW: u64 = 1 << 20;

/// Rows of comma-separated values (RFC 4180): a field in quotes may hold commas, ends of line, and quotes
/// twice.
struct CsvRows<R> {
    reader: R,
    line: usize,
}

impl<R: BufRead> CsvRows<R> {
    /// Reads the next row; false at the end.
    fn next(&mut self, row: &mut Vec<String>) -> std::io::Result<bool> {
        row.clear();
        let (mut text, mut quotes) = (String::new(), 0);
        loop {
            let before = text.len();
            if (&mut self.reader).take(LONGEST_ROW).read_line(&mut text)? == 0 {
                if text.is_empty() {
                    return Ok(false);
                }
                break;
            }
            self.line += 1;
            if text.len() as u64 >= LONGEST_ROW {
                let reason = format!(
                    "a row of more than {} MB ends at line {}",
                    LONGEST_ROW >> 20,
                    self.line
                );
                return Err(std::io::Error::other(reason));
            }
            // An odd number of quotes: the row goes on after the end of the line.
            quotes += text.as_bytes()[before..].iter().filter(|&&byte| byte == b'"').count();
            if quotes % 2 == 0 {
                break;
            }
        }
        let mut field = String::new();
        let mut quoted = false;
        let mut chars = text.trim_end_matches(['\n', '\r']).chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' if quoted && chars.peek() == Some(&'"') => {
                    chars.next();
                    field.push('"');
                }
                '"' => quoted = !quoted,
                ',' if !quoted => row.push(std::mem::take(&mut field)),
                c => field.push(c),
            }
        }
        row.push(field);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot by hand, in PanLex's tables and columns.
    fn snapshot(folder: &Path) -> std::path::PathBuf {
        let tables = [
            ("langvar.csv", "id,lang_code,var_code,name_expr\n1,eng,0,9\n2,fra,0,9\n3,deu,0,9\n"),
            (
                "expr.csv",
                "id,langvar,txt,txt_degr\n10,1,cat,cat\n11,1,\"ice, \"\"dry\"\"\",ice\n20,2,chat,chat\n\
                 21,2,minou,minou\n22,2,\"glace\nsèche\",glace\n30,3,Katze,katze\n",
            ),
            (
                "source.csv",
                "id,reg_date,label,quality\n5,2010,a,7\n6,2010,b,2\n7,2010,c,0\n8,2011,d,\n",
            ),
            ("meaning.csv", "id,source\n100,5\n101,6\n102,7\n103,5\n104,8\n105,5\n"),
            (
                "denotation.csv",
                "id,meaning,expr\n1,100,10\n2,100,20\n3,101,10\n4,101,20\n5,101,21\n6,102,11\n7,102,22\n\
                 8,103,10\n9,103,30\n10,104,10\n11,104,21\n12,105,10\n13,105,20\n",
            ),
        ];
        let path = folder.join("panlex-20300101-csv.zip");
        let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        for (name, text) in tables {
            let options = zip::write::SimpleFileOptions::default();
            archive.start_file(format!("panlex-20300101-csv/{name}"), options).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        archive.finish().unwrap();
        path
    }

    /// cat-chat is attested by sources of quality 7 (in two meanings, which count once) and 2; cat-minou by
    /// one of 2 and one that nobody judged; dry ice by one of quality 0 alone.
    #[test]
    fn weights_are_sums_of_qualities() {
        let folder = tempfile::tempdir().unwrap();
        let path = snapshot(folder.path());
        let mut written = Vec::new();
        let lines = dictionary(&path, "fr", Path::new("en-fr.tsv"), &mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "cat\tchat\t9\ncat\tminou\t2\n");
        assert_eq!(lines, Some([2, 1]));
        let error = dictionary(&path, "zh", Path::new("en-zh.tsv"), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("no translation between `eng` and `cmn`"), "{error}");
    }

    #[test]
    fn a_table_of_another_database_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.zip");
        let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        archive.start_file("langvar.csv", zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(b"lv,lc\n1,eng\n").unwrap();
        archive.finish().unwrap();
        let error = dictionary(&path, "fr", Path::new("x"), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("langvar.csv: has no column `id`"), "{error}");
    }
}
