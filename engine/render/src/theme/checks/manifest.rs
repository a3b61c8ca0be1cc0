//! Checks the values of `theme.yaml` that need the theme's other files or its parents: preloaded fonts, and the contrast of roles.

use crate::media::media_type::media_type;
use crate::styles::contrast::{self, TIMES};
use content::report::{Code, Diagnostic, TextPosition, hint_for};
use content::theme::{MANIFEST, Theme};
use content::yaml::{self, Node, Value};

/// The own manifest of a theme, with positions.
struct Written<'t> {
    theme: &'t Theme,
    text: &'t str,
    node: Node,
}

/// Returns the warnings about a theme's own manifest. A value of a parent is reported with the parent.
pub(super) fn check(theme: &Theme) -> Vec<Diagnostic> {
    let Some((_, text)) = theme.own_texts().find(|(path, _)| *path == MANIFEST) else {
        return Vec::new();
    };
    // The content crate has reported every error of the file.
    let Ok(node) = yaml::parse(text, 1) else {
        return Vec::new();
    };
    let written = Written { theme, text, node };
    let preloads = written.preloads();
    preloads.chain(written.contrasts()).collect()
}

impl Written<'_> {
    fn warning(&self, code: Code, message: String, position: TextPosition) -> Diagnostic {
        let file = self.theme.name_of(MANIFEST);
        Diagnostic::warning(code, file, message).at(position, self.text)
    }

    /// Returns a warning for each file of `preload` that is missing, or is not the font that its name says.
    fn preloads(&self) -> impl Iterator<Item = Diagnostic> {
        let files = list(&self.node, "preload").iter();
        files.filter_map(|item| {
            let Value::Text(path) = &item.value else {
                return None;
            };
            let Some(bytes) = self.theme.files.get(path) else {
                let message = format!("the theme has no file `{path}` to preload");
                let fonts = self.theme.files.keys().filter(|path| is_font(path));
                let hint = hint_for(path, fonts.map(String::as_str));
                let warning = self.warning(Code::MissingAsset, message, item.position);
                return Some(warning.hint(hint));
            };
            let (message, hint) = match (is_font(path), font_type(bytes)) {
                (true, Some(actual)) if actual == media_type(path) => return None,
                (true, Some(actual)) => (
                    format!("`{path}` is a font of the type {actual}, and its name says {}", media_type(path)),
                    "give the file the extension of its type: browsers skip a font that is preloaded with the wrong type",
                ),
                _ => (
                    format!("`{path}` is not a font, so browsers do not use the preloaded file"),
                    "preload fonts only (`.woff2`, `.woff`, `.ttf`, `.otf`)",
                ),
            };
            let warning = self.warning(Code::PreloadType, message, item.position);
            Some(warning.hint(hint))
        })
    }

    /// Returns a warning for each pair of roles below the contrast that text needs, by day or by night.
    fn contrasts(&self) -> impl Iterator<Item = Diagnostic> {
        let pairs = self.theme.manifest.contrast.iter();
        let pairs = pairs.filter_map(|pair| Some((pair, self.place_of(pair)?)));
        let both = pairs.flat_map(|pair| TIMES.map(|time| (pair, time)));
        both.filter_map(|(([text, ground], position), time)| {
            let roles = &self.theme.manifest.roles;
            let (front, back) = (roles.get(text)?, roles.get(ground)?);
            let front = time.of((front.day.as_str(), front.night.as_str()));
            let back = time.of((back.day.as_str(), back.night.as_str()));
            let message = contrast::problem(time, (text, front), (ground, back))?;
            let warning = self.warning(Code::LowContrast, message, position);
            Some(warning.hint(contrast::HINT))
        })
    }

    /// Returns the place of a pair in `contrast`, or of one of its roles. `None` if all come from a parent.
    fn place_of(&self, pair: &[String; 2]) -> Option<TextPosition> {
        let mut listed = list(&self.node, "contrast").iter();
        let is_same = |item: &&Node| match &item.value {
            Value::List(names) => names
                .iter()
                .zip(pair)
                .all(|(node, name)| matches!(&node.value, Value::Text(text) if text == name)),
            _ => false,
        };
        let roles = value(&self.node, "roles");
        let role = |name: &String| match roles.map(|node| &node.value) {
            Some(Value::Map(pairs)) => {
                let key = pairs.iter().find(|(key, _)| key.name == *name);
                key.map(|(key, _)| key.position)
            }
            _ => None,
        };
        let role = pair.iter().find_map(role);
        role.or_else(|| listed.find(is_same).map(|item| item.position))
    }
}

fn value<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let Value::Map(pairs) = &node.value else {
        return None;
    };
    let pair = pairs.iter().find(|(own, _)| own.name == key);
    pair.map(|(_, value)| value)
}

fn list<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    match value(node, key).map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

fn is_font(path: &str) -> bool {
    media_type(path).starts_with("font/")
}

/// Returns the media type of a font by its first bytes (RFC 8081; OpenType, font file formats).
fn font_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes.get(..4)? {
        b"wOF2" => Some("font/woff2"),
        b"wOFF" => Some("font/woff"),
        b"OTTO" => Some("font/otf"),
        b"\0\x01\0\0" | b"true" => Some("font/ttf"),
        _ => None,
    }
}
