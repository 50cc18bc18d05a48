//! The page: markup, style and script, which are part of the program.

/// The markup; it names its style sheet and its script.
pub(crate) const MARKUP: &str = include_str!("../page/index.html");
pub(crate) const STYLE: &str = include_str!("../page/page.css");
/// What `npm run build` makes of the TypeScript beside it.
pub(crate) const SCRIPT: &str = include_str!("../page/bundle/page.js");

/// The links of the markup that an export replaces by what they point to.
pub(crate) const STYLE_LINK: &str = "<link rel=\"stylesheet\" href=\"page.css\">";
pub(crate) const SCRIPT_LINK: &str = "<script src=\"page.js\" defer></script>";

#[cfg(test)]
mod tests {
    use super::*;

    /// What a run or a server says becomes text, never markup or code.
    #[test]
    fn nothing_is_parsed_as_markup() {
        for name in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "DOMParser",
        ] {
            assert!(!SCRIPT.contains(name), "{name}");
        }
        assert!(SCRIPT.contains("createElement") && !MARKUP.contains("onload"));
    }
}
