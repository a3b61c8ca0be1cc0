//! A small XML writer for sitemaps and feeds, which closes elements and escapes values.
//!
//! **Invariant:** for every text, the output is well-formed (XML 1.0).

use std::borrow::Cow;
use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesStart, BytesText, Event};

/// An XML document or fragment that is being written.
pub(crate) struct Xml(Writer<Vec<u8>>);

/// The attributes of an element.
type Attributes<'a> = &'a [(&'a str, &'a str)];

impl Xml {
    /// Begins a document with its declaration.
    pub(crate) fn document() -> Self {
        let mut xml = Self::fragment();
        xml.event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)));
        xml.line();
        xml
    }

    /// Begins a fragment of a document.
    pub(crate) fn fragment() -> Self {
        Self(Writer::new(Vec::new()))
    }

    /// Writes an element whose content `inside` writes.
    pub(crate) fn element(
        &mut self,
        name: &str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Self),
    ) {
        let start = start_tag(name, attributes);
        self.event(Event::Start(start.borrow()));
        self.line();
        inside(self);
        self.event(Event::End(start.to_end()));
        self.line();
    }

    /// Writes an element with text.
    pub(crate) fn text(&mut self, name: &str, attributes: Attributes<'_>, text: &str) {
        let start = start_tag(name, attributes);
        self.event(Event::Start(start.borrow()));
        self.event(Event::Text(BytesText::new(&strip_illegal(text))));
        self.event(Event::End(start.to_end()));
        self.line();
    }

    /// Writes an element without content.
    pub(crate) fn empty(&mut self, name: &str, attributes: Attributes<'_>) {
        self.event(Event::Empty(start_tag(name, attributes)));
        self.line();
    }

    /// Writes XML that is already escaped.
    pub(crate) fn raw(&mut self, xml: &str) {
        self.0.get_mut().extend_from_slice(xml.as_bytes());
    }

    /// Returns the written XML.
    pub(crate) fn into_string(self) -> String {
        String::from_utf8(self.0.into_inner()).unwrap_or_default()
    }

    fn event(&mut self, event: Event<'_>) {
        // Writing into memory cannot fail.
        let _: io::Result<()> = self.0.write_event(event);
    }

    fn line(&mut self) {
        self.raw("\n");
    }
}

fn start_tag<'a>(name: &'a str, attributes: Attributes<'a>) -> BytesStart<'a> {
    let mut start = BytesStart::new(name);
    for (name, value) in attributes {
        start.push_attribute((*name, strip_illegal(value).as_ref()));
    }
    start
}

/// Removes characters that XML forbids even in escaped form (XML 1.0, section 2.2).
fn strip_illegal(text: &str) -> Cow<'_, str> {
    let allowed = |character: char| matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    if text.chars().all(allowed) {
        Cow::Borrowed(text)
    } else {
        text.chars()
            .filter(|character| allowed(*character))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_well_formed_for_every_text() {
        let mut xml = Xml::document();
        xml.element("a", &[("title", "<\"&\u{8}")], |xml| {
            xml.text("b", &[], "1 < 2 & ]]>\u{0}\u{ffff}\u{1f3e0}");
            xml.empty("c", &[]);
        });
        assert_eq!(
            xml.into_string(),
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<a title=\"&lt;&quot;&amp;\">\n\
             <b>1 &lt; 2 &amp; ]]&gt;\u{1f3e0}</b>\n<c/>\n</a>\n"
        );
    }
}
