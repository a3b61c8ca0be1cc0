//! The Markdown form of a page: its main content, for readers and programs that want no HTML.
//!
//! The form is made from the finished page, when the form is first requested. Elements that are not content are left out by their tags and attributes, which mean the same in every theme.
//!
//! **Invariant:** the same page gives the same bytes. The length of the result is bounded, and so is the depth of the recursion.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use htmd::element_handler::{HandlerResult, Handlers};
use htmd::options::{BulletListMarker, Options};
use htmd::{Element, HtmlToMarkdown, Node};
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LINK,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use markup5ever_rcdom::NodeData;
use url::Url;

use crate::compile::compiled_tenant::{AddressMount, CompiledTenant};
use crate::resources::encodings::compress::{self, CompressionLevel};
use release::snapshot::fields::{CACHE_TAG, Fields};
use release::snapshot::{Body, MarkdownSlot, Resource};

/// The limit on the HTML of a page that has a Markdown form, in bytes. Indentation of nested lists multiplies the length of the text.
const MAX_HTML_BYTES: usize = 1 << 20;
/// The limit on open elements before the page is parsed, which takes time in proportion to their square. Elements without an end tag count as open.
const MAX_OPEN_ELEMENTS: usize = 4_000;
/// The limit on the depth of elements. The conversion recurses, and its stack must hold that.
const MAX_DEPTH: usize = 64;
/// The limit on the length of the result, in bytes.
const MAX_MARKDOWN_BYTES: usize = 4 << 20;

/// Elements without text that readers of Markdown need: controls, navigation, drawings, scripts.
const OMITTED_ELEMENTS: &str = "button canvas datalist dialog form iframe input link meta nav \
    noscript object progress script select style svg template textarea";

/// The main content of a page as Markdown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PageMarkdown {
    /// The text.
    pub(crate) text: String,
    /// The canonical URL of the page.
    pub(crate) canonical: String,
}

/// Converts the `main` element of a page, or its body if the theme has no `main`. Links and images get absolute URLs.
///
/// Returns `None` for pages without a canonical URL, and for pages that are too long or too deep.
pub(crate) fn convert(html: &str) -> Option<PageMarkdown> {
    if html.len() > MAX_HTML_BYTES || max_open_elements(html) > MAX_OPEN_ELEMENTS {
        return None;
    }
    let converter = converter();
    let document = converter.html_to_tree(html).ok()?;
    let canonical = find(&document, |node| {
        tag(node) == Some("link") && attribute(node, "rel").as_deref() == Some("canonical")
    });
    let canonical = attribute(&*canonical?, "href")?;
    let base = Url::parse(&canonical).ok()?;
    let main = find(&document, |node| tag(node) == Some("main"));
    let main = main.or_else(|| find(&document, |node| tag(node) == Some("body")))?;
    simplify(&main, &base)?;
    let mut text = converter.tree_to_markdown(&main);
    text.truncate(text.trim_end().len());
    text.push('\n');
    (text.len() <= MAX_MARKDOWN_BYTES).then_some(PageMarkdown { text, canonical })
}

fn converter() -> HtmlToMarkdown {
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    HtmlToMarkdown::builder()
        .options(options)
        .add_handler(vec!["a"], link)
        .add_handler(
            vec!["dd"],
            |handlers: &dyn Handlers, element: Element<'_>| block(&trimmed(handlers, element.node)),
        )
        .add_handler(vec!["dt", "summary"], term)
        .add_handler(vec!["img"], image)
        .add_handler(vec!["table"], table)
        .build()
}

/// Elements without content (WHATWG HTML, section 13.1.2) that pages have.
const VOID_ELEMENTS: [&[u8]; 8] = [
    b"br", b"hr", b"img", b"input", b"link", b"meta", b"source", b"track",
];

/// Returns the largest number of start tags that have no end tag yet, from the start of the page to any of its tags.
fn max_open_elements(html: &str) -> usize {
    let bytes = html.as_bytes();
    let (mut open, mut most) = (0_usize, 0);
    for start in memchr::memchr_iter(b'<', bytes) {
        let rest = &bytes[start + 1..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric());
        let name = &rest[..length.count()];
        if rest.first() == Some(&b'/') {
            open = open.saturating_sub(1);
        } else if !name.is_empty() && !VOID_ELEMENTS.contains(&name) {
            open += 1;
            most = most.max(open);
        }
    }
    most
}

/// Finds the first element in the order of the document.
fn find(document: &Rc<Node>, is_wanted: impl Fn(&Node) -> bool) -> Option<Rc<Node>> {
    let mut nodes = vec![Rc::clone(document)];
    while let Some(node) = nodes.pop() {
        if is_wanted(&node) {
            return Some(node);
        }
        nodes.extend(node.children.borrow().iter().rev().cloned());
    }
    None
}

/// Removes everything below an element that is not content, and makes its links absolute. Returns `None` if the elements are nested too deeply.
fn simplify(main: &Rc<Node>, base: &Url) -> Option<()> {
    let mut nodes = vec![(Rc::clone(main), 0)];
    while let Some((node, depth)) = nodes.pop() {
        if depth > MAX_DEPTH {
            return None;
        }
        if let NodeData::Element { attrs, .. } = &node.data {
            for attribute in attrs.borrow_mut().iter_mut() {
                if matches!(&*attribute.name.local, "href" | "src")
                    && let Ok(url) = base.join(&attribute.value)
                {
                    attribute.value = String::from(url).into();
                }
            }
        }
        let mut children = node.children.borrow_mut();
        children.retain(|child| !is_omitted(child));
        nodes.extend(children.iter().map(|child| (Rc::clone(child), depth + 1)));
    }
    Some(())
}

/// Returns whether an element is not content, by its tag and its attributes, which mean the same in every theme.
fn is_omitted(node: &Node) -> bool {
    let Some(tag) = tag(node) else {
        return matches!(node.data, NodeData::Comment { .. });
    };
    let is_navigation = || {
        let role = attribute(node, "role");
        role.is_some_and(|role| matches!(&*role, "navigation" | "search" | "presentation"))
    };
    OMITTED_ELEMENTS.split(' ').any(|omitted| omitted == tag)
        || attribute(node, "aria-hidden").as_deref() == Some("true")
        || attribute(node, "hidden").is_some()
        || attribute(node, "data-nosnippet").is_some()
        || is_navigation()
}

fn tag(node: &Node) -> Option<&str> {
    match &node.data {
        NodeData::Element { name, .. } => Some(&name.local),
        _ => None,
    }
}

fn attribute(node: &Node, wanted: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else {
        return None;
    };
    let attrs = attrs.borrow();
    let found = attrs
        .iter()
        .find(|attribute| &*attribute.name.local == wanted);
    found.map(|attribute| attribute.value.to_string())
}

/// Converts the children of an element.
fn trimmed(handlers: &dyn Handlers, node: &Rc<Node>) -> String {
    handlers.walk_children(node).content.trim().to_owned()
}

/// Separates a text from the blocks around it.
fn block(text: &str) -> Option<HandlerResult> {
    Some(format!("\n\n{text}\n\n").into())
}

/// Writes a link. A link around several blocks becomes a link around the first of them, since Markdown has no other.
fn link(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let text = trimmed(handlers, element.node);
    // Anchors of headings have no text.
    if text.is_empty() {
        return None;
    }
    if !text.contains('\n') && !text.starts_with('#') {
        return handlers.fallback(element);
    }
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let (marks, words) = match first.split_once(' ') {
        Some((marks, words)) if marks.bytes().all(|byte| byte == b'#') => {
            (format!("{marks} "), words)
        }
        _ => (String::new(), first),
    };
    let url = attribute(element.node, "href").unwrap_or_default();
    let url = url.replace('(', "%28").replace(')', "%29");
    block(&format!("{marks}[{words}]({url})\n{rest}"))
}

/// Writes a term or the title of an answer: in bold, unless it is a heading.
fn term(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let text = trimmed(handlers, element.node);
    match text.is_empty() || text.starts_with('#') || text.contains('\n') {
        true => block(&text),
        false => block(&format!("**{text}**")),
    }
}

/// Writes an image, unless it is decorative: its alt text is empty.
fn image(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let alt = attribute(element.node, "alt").unwrap_or_default();
    match alt.trim().is_empty() {
        true => None,
        false => handlers.fallback(element),
    }
}

/// Writes a table of GitHub Flavored Markdown, without padding: one long cell would lengthen every row.
fn table(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let (mut rows, mut caption, mut has_head) = (Vec::new(), String::new(), false);
    let mut alignments = Vec::new();
    let mut nodes = vec![Rc::clone(element.node)];
    while let Some(node) = nodes.pop() {
        for child in node.children.borrow().iter().rev() {
            match tag(child) {
                Some("caption") => caption = trimmed(handlers, child),
                Some("thead" | "tbody" | "tfoot" | "tr") => nodes.push(Rc::clone(child)),
                _ => {}
            }
        }
        if tag(&node) == Some("tr") {
            let (cells, is_head) = row(handlers, &node);
            has_head |= rows.is_empty() && is_head;
            if rows.is_empty() {
                alignments = alignments_of(&node);
            }
            rows.push(cells);
        }
    }
    let columns = rows.iter().map(Vec::len).max()?;
    alignments.resize(columns, " --- |");
    if !has_head {
        rows.insert(0, Vec::new());
    }
    if let Some(head) = rows.first_mut() {
        // The first row decides how many columns are shown (GitHub Flavored Markdown, section 4.10).
        head.resize(columns, String::new());
    }
    let mut lines = vec![caption, String::new()];
    for (index, cells) in rows.into_iter().enumerate() {
        lines.push(format!("| {} |", cells.join(" | ")));
        if index == 0 {
            lines.push(format!("|{}", alignments.join("")));
        }
    }
    block(lines.join("\n").trim_start())
}

/// Returns the delimiters below the cells of a row.
fn alignments_of(row: &Node) -> Vec<&'static str> {
    let cells = row.children.borrow();
    let cells = cells
        .iter()
        .filter(|cell| matches!(tag(cell), Some("td" | "th")));
    let delimiter = |cell: &Rc<Node>| match attribute(cell, "data-align").as_deref() {
        Some("center") => " :---: |",
        Some("right") => " ---: |",
        _ => " --- |",
    };
    cells.map(delimiter).collect()
}

/// Returns the cells of a row, and whether all of them are headings.
fn row(handlers: &dyn Handlers, row: &Node) -> (Vec<String>, bool) {
    let (mut cells, mut is_head) = (Vec::new(), true);
    for cell in row.children.borrow().iter() {
        if let Some(kind @ ("td" | "th")) = tag(cell) {
            is_head &= kind == "th";
            let text = trimmed(handlers, cell);
            let words: Vec<&str> = text.split_whitespace().collect();
            cells.push(words.join(" ").replace('|', "\\|"));
        }
    }
    (cells, is_head)
}

/// The header fields of a page that its Markdown form has, too. The others concern documents with markup.
const SHARED_FIELDS: [HeaderName; 5] = [
    CACHE_CONTROL,
    CACHE_TAG,
    HeaderName::from_static("cross-origin-resource-policy"),
    STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
];

/// Returns the Markdown form of a page.
///
/// # Errors
/// Returns the reason if the conversion panics.
fn resource(page: &Body) -> Result<Option<Resource>, String> {
    let Some(bytes) = page
        .variants
        .identity()
        .and_then(|one| one.bytes.in_memory())
    else {
        return Ok(None);
    };
    let html = String::from_utf8_lossy(bytes);
    // A panic of the converter must not end the thread, which has other work.
    let converted = catch_unwind(AssertUnwindSafe(|| convert(&html)));
    let Some(PageMarkdown { text, canonical }) =
        converted.map_err(|_| "the converter failed".to_owned())?
    else {
        return Ok(None);
    };
    let (given, varies, ranges) = page.fields.parts();
    let mut fields = HeaderMap::new();
    for name in SHARED_FIELDS {
        fields.extend(given.get(&name).map(|value| (name, value.clone())));
    }
    let media_type = HeaderValue::from_static("text/markdown; charset=utf-8");
    fields.insert(CONTENT_TYPE, media_type);
    let robots = HeaderName::from_static("x-robots-tag");
    fields.insert(robots, HeaderValue::from_static("noindex"));
    if let Ok(link) = HeaderValue::try_from(format!("<{canonical}>; rel=\"canonical\"")) {
        fields.insert(LINK, link);
    }
    let bytes = Bytes::from(text.into_bytes().into_boxed_slice());
    Ok(Some(Resource::Body(Body {
        status: page.status,
        fields: Arc::new(Fields::new(fields, varies, ranges)),
        cache_tag: page.cache_tag.clone(),
        variants: compress::variants(bytes, true, CompressionLevel::Page),
    })))
}

/// A task that makes the Markdown form of a page for all addresses of its tenant.
#[derive(Debug)]
pub struct MarkdownTask {
    /// The page at the canonical address, whose links the form has.
    page: Arc<Resource>,
    slots: Vec<Arc<MarkdownSlot>>,
    name: String,
}

impl MarkdownTask {
    /// Returns a number that identifies the page as long as this value exists.
    #[must_use]
    pub fn place(&self) -> usize {
        Arc::as_ptr(&self.page).addr()
    }

    /// Returns the tenant's id and the path, for logs.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Fills the slots. A page that cannot be converted has no Markdown form.
    ///
    /// # Errors
    /// Returns the reason if the conversion fails. The conversion is not retried.
    pub fn run(&self) -> Result<(), String> {
        if !self.slots.iter().any(|slot| slot.is_open()) {
            return Ok(());
        }
        let made = self.make();
        let resource = made.as_ref().ok().and_then(Option::clone);
        for slot in &self.slots {
            slot.fill(resource.clone());
        }
        made.map(drop)
    }

    fn make(&self) -> Result<Option<Arc<Resource>>, String> {
        match &*self.page {
            Resource::Body(body) => Ok(resource(body)?.map(Arc::new)),
            Resource::Redirect(_) => Ok(None),
        }
    }
}

impl CompiledTenant {
    /// Returns the task that makes the Markdown form at a path (`/terms.md`), if its pages are in memory.
    #[must_use]
    pub fn markdown_task(&self, path: &str) -> Option<MarkdownTask> {
        let pages = self.mounts.first()?.pages()?.resources.pages();
        let own = path.strip_suffix(".md")?;
        let home = (path == "/index.md").then_some("/");
        let page = home.and_then(|home| pages.get(home));
        let page = page.or_else(|| pages.get(own))?;
        let slots = self.mounts.iter().filter_map(AddressMount::pages);
        let slots = slots.filter_map(|pages| pages.resources.markdown().get(path));
        Some(MarkdownTask {
            page: Arc::clone(page),
            slots: slots.cloned().collect(),
            name: format!("{}: {path}", self.mounts.first()?.mount.tenant),
        })
    }

    /// Makes the Markdown forms of all pages, by path, without filling a slot.
    ///
    /// # Errors
    /// Returns the path and the reason if a conversion fails.
    pub fn markdown_forms(&self) -> impl Iterator<Item = Result<(String, Arc<Resource>), String>> {
        let pages = self.mounts.first().and_then(AddressMount::pages);
        let paths = pages
            .into_iter()
            .flat_map(|pages| pages.resources.markdown().keys());
        let tasks = paths.filter_map(|path| Some((path, self.markdown_task(path)?)));
        tasks.filter_map(|(path, task)| match task.make() {
            Ok(form) => form.map(|form| Ok((path.to_string(), form))),
            Err(problem) => Some(Err(format!("{}: {problem}", task.name()))),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(main: &str) -> String {
        format!(
            "<!doctype html><html><head><link rel=\"canonical\" href=\"https://studio.example/app/terms\"></head>\
             <body><header>Menu</header><main id=\"main\">{main}</main><footer>Imprint</footer></body></html>"
        )
    }

    fn text(main: &str) -> String {
        convert(&page(main)).expect("Markdown").text
    }

    #[test]
    fn main_content_becomes_markdown() {
        for (main, expected) in [
            (
                "<h1>Terms</h1><p>Two <strong>bold</strong> and <em>soft</em> words.</p>",
                "# Terms\n\nTwo **bold** and *soft* words.\n",
            ),
            (
                "<ul><li>One<ul><li>Inner<ol><li>Deep</li></ol></li></ul></li><li>Two</li></ul>",
                "- One\n  - Inner\n    1. Deep\n- Two\n",
            ),
            (
                "<pre tabindex=\"0\"><code class=\"language-sh\"><span class=\"x\">ls</span> a|b *\n</code></pre>",
                "```sh\nls a|b *\n```\n",
            ),
            ("<pre><code>a\n\nb\n</code></pre>", "```\na\n\nb\n```\n"),
            (
                "<dl><div><dt>Email</dt><dd>a@b.example</dd></div></dl>",
                "**Email**\n\na@b.example\n",
            ),
            (
                "<details><summary><h3>Why?</h3></summary><p>So.</p></details><details><summary>When?</summary><p>Now.</p></details>",
                "### Why?\n\nSo.\n\n**When?**\n\nNow.\n",
            ),
            (
                "<blockquote><p>A</p><p>B</p></blockquote>",
                "> A\n> \n> B\n",
            ),
            ("<p>1 * 2 and [x]</p>", "1 \\* 2 and \\[x\\]\n"),
            ("", "\n"),
        ] {
            assert_eq!(text(main), expected, "{main}");
        }
    }

    #[test]
    fn tables_keep_columns_alignment_and_bars() {
        let table = "<div role=\"region\"><table><thead><tr><th>Name</th><th data-align=\"right\">Size</th></tr></thead>\
                     <tbody><tr><td><code>a|b</code></td><td>1</td></tr><tr><td><p>Two</p><p>lines</p></td></tr></tbody></table></div>";
        assert_eq!(
            text(table),
            "| Name | Size |\n| --- | ---: |\n| `a\\|b` | 1 |\n| Two lines |\n"
        );
        let headless = "<table><caption>Sizes</caption><tr><td>a</td></tr><tr><td>b</td><td>c</td></tr></table>";
        assert_eq!(
            text(headless),
            "Sizes\n\n|  |  |\n| --- | --- |\n| a |\n| b | c |\n"
        );
        // One long cell does not lengthen the other rows.
        let long = "x".repeat(100_000);
        let rows = "<tr><td>y</td></tr>".repeat(1_000);
        let wide = text(&format!("<table><tr><td>{long}</td></tr>{rows}</table>"));
        assert!(wide.len() < 2 * long.len(), "{}", wide.len());
    }

    #[test]
    fn links_and_images_get_absolute_urls() {
        for (main, expected) in [
            (
                "<p><a href=\"/app/privacy?a=1#b\">Privacy</a></p>",
                "[Privacy](https://studio.example/app/privacy?a=1#b)\n",
            ),
            (
                "<p><a href=\"#fees\">Fees</a></p>",
                "[Fees](https://studio.example/app/terms#fees)\n",
            ),
            (
                "<p><a href=\"/\">Studio</a></p>",
                "[Studio](https://studio.example/)\n",
            ),
            (
                "<p><a href=\"https://other.example/x\">X</a></p>",
                "[X](https://other.example/x)\n",
            ),
            (
                "<p><a href=\"mailto:a@b.example\">Write</a></p>",
                "[Write](mailto:a@b.example)\n",
            ),
            (
                "<picture><source srcset=\"/app/assets/h.1.webp\"><img src=\"/app/assets/h.1.jpg\" alt=\"A hall\"></picture>",
                "![A hall](https://studio.example/app/assets/h.1.jpg)\n",
            ),
            ("<p>No <img src=\"/x.png\" alt=\"\">image</p>", "No image\n"),
            (
                "<video src=\"/app/assets/t.1.mp4\"><a href=\"/app/assets/t.1.mp4\">A tour</a></video>",
                "[A tour](https://studio.example/app/assets/t.1.mp4)\n",
            ),
            (
                "<h2>Fees<a href=\"#fees\" aria-label=\"Link to this section: Fees\"></a></h2>",
                "## Fees\n",
            ),
            (
                "<a href=\"/app/(x)\"><h3>Card</h3><p>Its text.</p></a><p>Next</p>",
                "### [Card](https://studio.example/app/%28x%29)\n\nIts text.\n\nNext\n",
            ),
        ] {
            assert_eq!(text(main), expected, "{main}");
        }
    }

    #[test]
    fn controls_and_navigation_are_omitted() {
        for omitted in [
            "<nav><ol><li><a href=\"/\">Home</a></li></ol></nav>",
            "<div role=\"navigation\">x</div>",
            "<form><label>Name<input name=\"x\"></label></form>",
            "<button>Press</button>",
            "<p aria-hidden=\"true\">x</p>",
            "<p hidden>x</p>",
            "<p data-nosnippet>x</p>",
            "<script>let x;</script><style>p{}</style><svg><text>x</text></svg>",
            "<noscript>x</noscript><template><p>x</p></template><!-- x -->",
            "<row-island name=\"X\" props=\"{}\"><form>x</form></row-island>",
        ] {
            assert_eq!(
                text(&format!("<p>A</p>{omitted}<p>B</p>")),
                "A\n\nB\n",
                "{omitted}"
            );
        }
        let island = "<row-island name=\"X\"><p>Shown without a script.</p></row-island>";
        assert_eq!(text(island), "Shown without a script.\n");
    }

    #[test]
    fn page_without_canonical_url_has_no_markdown() {
        let link = "<link rel=\"canonical\" href=\"https://a.example/\">";
        for html in [
            "",
            "<main>x</main>",
            "<link rel=\"canonical\" href=\"/x\"><main>x</main>",
        ] {
            assert_eq!(convert(html), None, "{html}");
        }
        // Without a `main`, the body counts.
        for main in ["<main>x</main>", "<nav>y</nav><p>x</p>"] {
            let expected = PageMarkdown {
                text: "x\n".to_owned(),
                canonical: "https://a.example/".to_owned(),
            };
            assert_eq!(convert(&format!("{link}{main}")), Some(expected));
        }
    }

    #[test]
    fn deep_and_long_pages_have_no_markdown() {
        let nested = |depth: usize| page(&"<blockquote>".repeat(depth));
        assert!(convert(&nested(MAX_DEPTH)).is_some());
        for depth in [MAX_DEPTH + 1, 20_000] {
            assert_eq!(convert(&nested(depth)), None, "{depth}");
        }
        assert_eq!(convert(&page(&"x".repeat(MAX_HTML_BYTES))), None);
    }

    proptest! {
        #[test]
        fn odd_html_gives_bounded_markdown(
            parts in proptest::collection::vec(
                prop_oneof![
                    "[ a-z<>&/=\"'|`*#_\\[\\]()!\n\u{0}\u{202e}\u{1f600}-]{0,12}",
                    proptest::sample::select(vec![
                        "<p>", "</p>", "<ul>", "<ol start=9>", "<li>", "</ul>", "<table>", "<tr>", "<td>", "<th colspan=999999>", "</table>",
                        "<a href='x'>", "<a href='http://['>", "</a>", "<h2>", "</h2>", "<pre>", "<code>", "</code></pre>", "<img src=/x alt='a]('>",
                        "<dl><dt>", "<dd>", "<svg>", "</svg>", "<math><mi>", "<template>", "<select><option>", "<b>", "</b>", "<!--", "-->", "<![CDATA[",
                        "<summary>", "<caption>", "<br>", "<hr>", "</main>", "<main>", "<blockquote>", "<?php", "&#0;", "&#x10ffff;",
                    ]).prop_map(str::to_owned),
                ],
                0..60,
            ),
        ) {
            let html = page(&parts.concat());
            let made = convert(&html);
            if let Some(PageMarkdown { text, .. }) = &made {
                prop_assert!(text.ends_with('\n'));
                prop_assert!(text.len() < 100 * html.len() + 1_000, "{}", text.len());
            }
            prop_assert_eq!(made, convert(&html));
        }
    }
}
