//! Text of a tenant stays text: no theme makes an element or an attribute from a field, a UI string, a key or a file name.

use std::collections::BTreeMap;
use std::fs;

use content::schema::referred;
use content::yaml::parse;
use rowhouse_tests::{TestSite, text_of, workspace};
use serde_json::{Map, Value as Json, json};

/// Ends an attribute, an element, a script and a title, if it is not escaped.
const HOSTILE: &str = "x'\"></script></title></textarea><probe-x> probe-y='\" probe-y=";

/// Returns the same text for Markdown, where an element is an error.
fn in_markdown() -> String {
    HOSTILE.replace('<', "\\<")
}

/// Returns the elements and attributes that hostile text made in a page.
fn elements_made_by_text(html: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        let mut quote = None;
        let mut end = rest.len();
        for (offset, letter) in rest.char_indices() {
            match (quote, letter) {
                (None, '"' | '\'') => quote = Some(letter),
                (Some(open), letter) if open == letter => quote = None,
                (None, '>') => {
                    end = offset + 1;
                    break;
                }
                (None, _) if rest[offset..].starts_with("probe-") => {
                    found.push(&rest[..offset + 7])
                }
                _ => {}
            }
        }
        let tag = &rest[..end];
        rest = &rest[end..];
        for raw in ["script", "style"] {
            if tag.starts_with(&format!("<{raw}")) {
                let close = format!("</{raw}");
                rest = rest.find(&close).map_or("", |close| &rest[close..]);
            }
        }
    }
    found
}

/// Makes a value for a schema: hostile text where text is free, otherwise the value of the example.
fn filled(root: &Json, schema: &Json, example: Option<&Json>) -> Option<Json> {
    let schema = referred(root, schema);
    if let Some(constant) = schema.get("const") {
        return Some(constant.clone());
    }
    if schema.get("enum").is_some() {
        return example.cloned();
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), None) => Some(json!(HOSTILE)),
        (Some("string"), Some("markdown" | "inline-markdown")) => Some(json!(in_markdown())),
        // Other keys may need the link.
        (Some("string"), Some("link")) => example.cloned().or_else(|| Some(json!("/"))),
        (Some("object"), _) | (None, _) if schema.get("properties").is_some() => {
            let required = schema["required"].as_array();
            let mut object = Map::new();
            for (name, property) in schema["properties"].as_object()? {
                match filled(
                    root,
                    property,
                    example.and_then(|example| example.get(name)),
                ) {
                    Some(value) => drop(object.insert(name.clone(), value)),
                    None if required.is_some_and(|names| names.contains(&json!(name))) => {
                        return None;
                    }
                    None => {}
                }
            }
            Some(Json::Object(object))
        }
        (Some("array"), _) => {
            let first = example.and_then(|example| example.get(0));
            filled(root, &schema["items"], first).map(|item| json!([item]))
        }
        _ => example.cloned(),
    }
}

fn yaml(path: &std::path::Path) -> Json {
    let text = fs::read_to_string(path).expect("a file");
    parse(&text, 1).expect("YAML").to_json()
}

/// Puts hostile text before each UI string, and leaves the placeholders.
fn hostile_strings(strings: &Json) -> Json {
    match strings {
        Json::String(text) => json!(format!("{HOSTILE}{text}")),
        Json::Object(strings) => {
            let strings = strings.iter();
            strings
                .map(|(key, value)| (key.clone(), hostile_strings(value)))
                .collect::<Map<_, _>>()
                .into()
        }
        other => other.clone(),
    }
}

/// Returns the pages of a hostile tenant in a theme, by their paths.
fn pages_in(theme: &str) -> BTreeMap<String, String> {
    let mut site = TestSite::copy_of(&workspace().join("tests/fixtures/german"));
    let folder = site.path("tenants");
    for entry in fs::read_dir(&folder).expect("a folder") {
        fs::remove_dir_all(entry.expect("an entry").path()).expect("removed");
    }
    let own = workspace().join("themes").join(theme);
    rowhouse_tests::copy(&workspace().join("themes"), &site.path("themes"));
    let strings = hostile_strings(&yaml(&own.join("strings/en.yaml")));
    let manifest = json!({
        "name": HOSTILE, "tagline": HOSTILE, "description": HOSTILE, "root": true, "theme": theme,
        "search": true, "strings": strings,
        "company": {
            "name": HOSTILE, "legal_name": HOSTILE, "description": HOSTILE, "blurb": HOSTILE,
            "email": "a@b.example", "phone": HOSTILE, "phone_hours": HOSTILE, "locations": [HOSTILE],
            "time_zone": "America/Chicago", "contact_type": HOSTILE, "contact_languages": [HOSTILE],
            "navigation": [{"label": HOSTILE, "link": "/"}],
            "columns": [{"title": HOSTILE, "links": [{"label": HOSTILE, "link": "/"}]}],
            "legal": [{"label": HOSTILE, "link": "/"}],
            "sites": [{"tenant": "evil", "name": HOSTILE}],
        },
    });
    site.write("tenants/evil/tenant.yaml", manifest.to_string());
    let text = in_markdown();
    let body = format!(
        "## {text}\n\n{text} `{HOSTILE}` [{text}](/)\n\n```html\n{HOSTILE}\n```\n\n| {text} |\n|---|\n| {text} |\n"
    );
    let page = |extra: Json, body: &str| {
        let mut front = json!({
            "title": HOSTILE, "heading": HOSTILE, "description": HOSTILE, "breadcrumb": HOSTILE,
            "excerpt": HOSTILE, "tags": [HOSTILE], "date": "2026-01-02", "back": {"label": HOSTILE, "link": "/"},
        });
        let fields = front.as_object_mut().expect("an object");
        fields.extend(extra.as_object().expect("an object").clone());
        format!("---\n{front}\n---\n{body}")
    };
    let drawing = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\"><path d=\"M0 0h9v9z\"/></svg>";
    site.write(&format!("tenants/evil/assets/{FILE}"), drawing);
    site.write("tenants/evil/pages/index.md", page(json!({}), &body));
    site.write(
        "tenants/evil/pages/blog/index.md",
        page(json!({"layout": "collection"}), ""),
    );
    site.write(
        "tenants/evil/pages/blog/post.md",
        page(json!({"layout": "post"}), &body),
    );
    site.write(
        "tenants/evil/pages/terms.md",
        page(json!({"layout": "legal"}), &body),
    );
    let common = yaml(&own.join("sections/common.yaml"));
    for entry in fs::read_dir(own.join("sections")).expect("a folder") {
        let folder = entry.expect("an entry").path();
        if !folder.is_dir() {
            continue;
        }
        let kind = folder
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let mut schema = yaml(&folder.join("schema.yaml"));
        let fields = schema.as_object_mut().expect("an object");
        for part in ["properties", "$defs"] {
            let own = fields.entry(part).or_insert_with(|| json!({}));
            let shared = common[part].as_object().cloned().unwrap_or_default();
            let own = own.as_object_mut().expect("an object");
            shared.into_iter().for_each(|(name, value)| {
                own.entry(name).or_insert(value);
            });
        }
        let example = yaml(&folder.join("example.yaml"));
        let mut section = filled(&schema, &schema, Some(&example)).expect("a section");
        let fields = section.as_object_mut().expect("an object");
        for name in ["id", "group"] {
            fields.remove(name);
        }
        replace_files(fields);
        fields.insert("kind".into(), json!(kind));
        site.write(
            &format!("tenants/evil/pages/{}.md", kind.replace('_', "-")),
            page(json!({"sections": [section]}), ""),
        );
    }
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    let mount = site.mount("studio.example", "").expect("a mount");
    let pages = mount.pages.get().expect("rendered");
    let pages = pages.resources.iter();
    pages
        .filter_map(|(path, resource)| Some((path.to_string(), text_of(resource)?)))
        .filter(|(_, text)| text.starts_with("<!doctype html>"))
        .collect()
}

/// A file name with as much markup as a name can have.
const FILE: &str = "a'\"><probe-x probe-y='.svg";

/// Replaces links by the landing page and images by the hostile file, since examples name missing files.
fn replace_files(fields: &mut Map<String, Json>) {
    for (name, value) in fields {
        match value {
            Json::String(text) if ["link", "collection"].contains(&name.as_str()) => {
                *text = if name == "link" { "/" } else { "/blog" }.to_owned();
            }
            Json::String(text)
                if ["image", "drawing"].contains(&name.as_str()) && text.contains('.') =>
            {
                *text = FILE.to_owned();
            }
            Json::String(text) if name == "site" => *text = "evil".to_owned(),
            Json::Object(fields) => replace_files(fields),
            Json::Array(items) => {
                let items = items.iter_mut().filter_map(Json::as_object_mut);
                items.for_each(replace_files);
            }
            _ => {}
        }
    }
}

#[test]
fn no_theme_makes_markup_of_tenant_text() {
    for theme in ["base", "plain"] {
        let pages = pages_in(theme);
        assert!(pages.len() > 10, "{theme}: {:?}", pages.keys());
        for (path, html) in &pages {
            assert_eq!(elements_made_by_text(html), [""; 0], "{theme}: {path}");
        }
        assert!(pages["/"].contains("&lt;probe-x"), "{theme}");
    }
}

#[test]
fn ui_string_is_escaped_before_markdown_filter() {
    let mut site = TestSite::copy_of(&workspace().join("tests/fixtures/errors/safe-filter"));
    site.write(
        "tenants/sample/tenant.yaml",
        json!({"name": "Sample", "strings": {"engine.home": HOSTILE}}).to_string(),
    );
    site.reload();
    assert!(site.report().is_servable(), "{}", site.report_text());
    let html = site.page("studio.example", "/sample", "/").expect("a page");
    assert_eq!(elements_made_by_text(&html), [""; 0]);
    assert!(
        html.contains("<em>") && html.contains("&lt;probe-x"),
        "{html}"
    );
}

#[test]
fn probe_detects_markup_made_by_text() {
    for html in [
        "<p><probe-x></p>",
        "<p title=\"x\" probe-y=\"\">",
        "<script>a</script><probe-x>",
    ] {
        assert_eq!(elements_made_by_text(html).len(), 1, "{html}");
    }
    for html in [
        "<p>&lt;probe-x> probe-y=</p>",
        "<p title=\"'<probe-x> probe-y='\">",
        "<script>\"<probe-x>\"</script>",
    ] {
        assert_eq!(elements_made_by_text(html), [""; 0], "{html}");
    }
}
