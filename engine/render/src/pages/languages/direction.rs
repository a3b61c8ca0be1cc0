//! The direction of pages in languages that are written from right to left.

/// Marks the page's root as right-to-left, unless the layout sets a direction itself (WHATWG HTML, section 3.2.6.4).
pub(in crate::pages) fn right_to_left(mut html: String) -> String {
    let Some(start) = html.find("<html") else {
        return html;
    };
    let end = html[start..]
        .find('>')
        .map_or(html.len(), |end| start + end);
    if !html[start..end].contains(" dir=") {
        html.insert_str(end, " dir=\"rtl\"");
    }
    html
}

#[cfg(test)]
mod tests {
    use super::right_to_left;

    #[test]
    fn right_to_left_sets_the_direction_of_the_root_once() {
        for (layout, page) in [
            ("<html lang=\"ar\"><p>", "<html lang=\"ar\" dir=\"rtl\"><p>"),
            ("<html dir=\"auto\"><p>", "<html dir=\"auto\"><p>"),
            ("<p dir=\"ltr\">", "<p dir=\"ltr\">"),
        ] {
            assert_eq!(right_to_left(layout.to_owned()), page);
        }
    }
}
