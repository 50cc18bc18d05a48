//! SVG as PDF and PNG, by `svg2pdf` and `resvg`. Text shows on a machine without fonts: Inter is part of the program
//! (`fonts`). The system's fonts are looked at only where a text has a letter that it lacks, such as Chinese.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Options, Tree, fontdb};

#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// It is not SVG as `usvg` reads it.
    #[error("the drawing is not valid SVG ({0}); a style sheet or a name in it is wrong")]
    Svg(#[from] usvg::Error),
    /// The PDF could not be made.
    #[error("the drawing cannot be a PDF ({0}); take the SVG instead")]
    Pdf(String),
    /// The picture could not be made.
    #[error("the drawing cannot be a PNG of {width} x {height} pixels; take a smaller scale")]
    Png {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
}

impl terms::Fault for PictureError {}

/// The regular and the semibold weight.
const FONTS: [&[u8]; 2] =
    [include_bytes!("fonts/Inter-Regular.ttf"), include_bytes!("fonts/Inter-SemiBold.ttf")];

static BUNDLED: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| Arc::new(bundled()));

static WITH_SYSTEM: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = bundled();
    fonts.load_system_fonts();
    // Ours stays the font of the generic family, whatever the system prefers.
    fonts.set_sans_serif_family("Inter");
    Arc::new(fonts)
});

fn bundled() -> fontdb::Database {
    let mut fonts = fontdb::Database::new();
    for font in FONTS {
        fonts.load_font_data(font.to_vec());
    }
    fonts.set_sans_serif_family("Inter");
    fonts
}

/// How often a PDF is made until its fonts stand in order: of the few fonts of a drawing, every other time or so.
const ATTEMPTS: usize = 64;

/// A drawing as a PDF of one page, its text as text in an embedded font; the same bytes every time.
pub fn pdf(svg: &str) -> Result<Vec<u8>, PictureError> {
    let tree = tree(svg)?;
    let mut made = Vec::new();
    // `svg2pdf` writes fonts and names of resources in the order of a hash table, which is another every time.
    for _ in 0..ATTEMPTS {
        let (text, page) = (svg2pdf::ConversionOptions::default(), svg2pdf::PageOptions::default());
        made = svg2pdf::to_pdf(&tree, text, page)
            .map_err(|error| PictureError::Pdf(error.to_string()))?;
        if fonts(&made).is_sorted() {
            break;
        }
    }
    let mut lines: Vec<&[u8]> = made.split(|&byte| byte == b'\n').collect();
    // No object moves by it.
    lines.chunk_by_mut(|a, b| names_resource(a) && names_resource(b)).for_each(<[_]>::sort);
    Ok(lines.join(&b'\n'))
}

/// The numbers of a PDF's fonts, as they stand in it.
fn fonts(pdf: &[u8]) -> Vec<u32> {
    let (mut object, mut found) = (0, Vec::new());
    for line in pdf.split(|&byte| byte == b'\n') {
        let number = line.strip_suffix(b" 0 obj").and_then(|number| str::from_utf8(number).ok());
        object = number.and_then(|number| number.parse().ok()).unwrap_or(object);
        if line.trim_ascii() == b"/Subtype /Type0" {
            found.push(object);
        }
    }
    found
}

/// Whether a line of a PDF gives an object a name, such as `/gs0 7 0 R`.
fn names_resource(line: &[u8]) -> bool {
    let name = line.trim_ascii_start().split(|&byte| byte == b' ').next().unwrap_or_default();
    let kinds: [&[u8]; 6] = [b"/cs", b"/fo", b"/gs", b"/po", b"/sh", b"/xo"];
    let number = kinds.iter().find_map(|kind| name.strip_prefix(*kind)).unwrap_or_default();
    !number.is_empty() && number.iter().all(u8::is_ascii_digit)
}

/// The largest picture, in pixels: a gigabyte of them.
const MOST_PIXELS: u64 = 1 << 28;

/// A drawing as a PNG, `scale` pixels for each unit of the drawing.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, PictureError> {
    let tree = tree(svg)?;
    let size = tree.size();
    let (width, height) =
        ((size.width() * scale).ceil() as u32, (size.height() * scale).ceil() as u32);
    let too_large = PictureError::Png { width, height };
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(too_large);
    }
    let Some(mut pixels) = Pixmap::new(width, height) else { return Err(too_large) };
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|_| too_large)
}

/// How many colours that are no shade of grey a PNG has: a drawing whose style a renderer does not know is black.
pub fn colours(png: &[u8]) -> usize {
    let Ok(picture) = Pixmap::decode_png(png) else { return 0 };
    let grey = |a: u8, b: u8| a.abs_diff(b) < 24;
    let pixels = picture.pixels().iter().map(|pixel| pixel.demultiply());
    let coloured = pixels.filter(|p| !(grey(p.red(), p.green()) && grey(p.green(), p.blue())));
    coloured.map(|p| [p.red(), p.green(), p.blue()]).collect::<HashSet<_>>().len()
}

fn tree(svg: &str) -> Result<Tree, usvg::Error> {
    let fontdb = if has_all_letters(svg) { &*BUNDLED } else { &*WITH_SYSTEM };
    let options = Options {
        fontdb: Arc::clone(fontdb),
        font_family: "Inter".to_owned(),
        ..Options::default()
    };
    Tree::from_str(svg, &options)
}

/// Whether Inter's subset covers a text: Latin with its accents, Greek, Cyrillic and signs.
fn has_all_letters(text: &str) -> bool {
    text.chars()
        .all(|c| matches!(c as u32, 0..0x180 | 0x370..0x460 | 0x1e00..0x1f00 | 0x2000..0x2a00))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\">\
        <rect width=\"60\" height=\"20\" fill=\"#fff\"/>\
        <text x=\"2\" y=\"15\" font-size=\"14\" font-family=\"No such font, sans-serif\">αβ жя</text></svg>";

    /// The fonts of the machine play no part: the text is in ours.
    #[test]
    fn text_shows_without_fonts_of_the_system() {
        let picture = Pixmap::decode_png(&png(WORDS, 2.0).unwrap()).unwrap();
        assert_eq!((picture.width(), picture.height()), (120, 40));
        let dark = picture.pixels().iter().filter(|pixel| pixel.red() < 128).count();
        assert!(dark > 100, "{dark} dark pixels");
        let page = pdf(WORDS).unwrap();
        assert!(page.starts_with(b"%PDF-"));
        let has = |needle: &[u8]| page.windows(needle.len()).any(|window| window == needle);
        assert!(has(b"Inter") && has(b"ToUnicode"));
    }

    #[test]
    fn a_pdf_has_the_same_bytes_every_time() {
        let mark = |n: usize| {
            let weight = if n.is_multiple_of(2) { "400" } else { "600" };
            format!(
                "<text x=\"2\" y=\"15\" font-family=\"Inter\" font-weight=\"{weight}\" opacity=\"0.{n}\">a</text>\
                 <rect width=\"{n}\" height=\"2\" fill-opacity=\"0.{n}\"/>"
            )
        };
        let marks = (1..9).map(mark).collect::<String>();
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\">{marks}</svg>"
        );
        let first = pdf(&svg).unwrap();
        assert_eq!(fonts(&first).len(), 2);
        assert!((0..8).all(|_| pdf(&svg).unwrap() == first));
    }

    #[test]
    fn wrong_drawings_are_refused() {
        assert!(pdf("<svg").is_err() && png("no", 1.0).is_err());
        assert!(matches!(png(WORDS, 1e6), Err(PictureError::Png { .. })));
    }
}
