//! A language: its UI strings, and its formats of dates, numbers and lists (Unicode CLDR, by ICU4X).

use std::collections::BTreeMap;
use std::sync::Arc;

use icu_calendar::{Date as Day, Gregorian};
use icu_datetime::FixedCalendarDateTimeFormatter;
use icu_datetime::fieldsets::YMD;
use icu_decimal::DecimalFormatter;
use icu_decimal::input::Decimal;
use icu_list::ListFormatter;
use icu_list::options::ListFormatterOptions;
use icu_locale_core::Locale;
use icu_plurals::{PluralCategory, PluralRules, PluralRulesOptions};
use serde_json::{Map, Value as Json};

use content::formats::values::Date;
use content::theme::strings::{ArgumentKind, COUNT, MessagePiece, Pattern, Strings, Text};

/// A language of a theme or of a tenant.
#[derive(Debug, Clone)]
pub struct Language {
    tag: String,
    strings: Strings,
    rules: Arc<LanguageRules>,
}

/// The formatting rules of a language.
#[derive(Debug)]
struct LanguageRules {
    days: FixedCalendarDateTimeFormatter<Gregorian, YMD>,
    numbers: DecimalFormatter,
    lists: ListFormatter,
    plurals: PluralRules,
}

/// The value of a placeholder.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    /// A text, or a date as `2025-07-21`.
    Text(String),
    /// An integer.
    Number(i64),
    /// A list of texts.
    List(Vec<String>),
}

impl Language {
    /// Creates a language by its tag (BCP 47).
    ///
    /// # Errors
    /// Returns an error if the tag is invalid, or if ICU4X has no data for it.
    pub(crate) fn new(tag: &str, strings: Strings) -> Result<Self, String> {
        let unknown =
            || format!("`{tag}` is not a valid language tag: write a tag such as `en` or `pt-BR`");
        let locale: Locale = tag.parse().map_err(|_| unknown())?;
        let plurals = PluralRulesOptions::default();
        let rules = LanguageRules {
            days: FixedCalendarDateTimeFormatter::try_new((&locale).into(), YMD::long())
                .map_err(|_| unknown())?,
            numbers: DecimalFormatter::try_new((&locale).into(), Default::default())
                .map_err(|_| unknown())?,
            lists: ListFormatter::try_new_and((&locale).into(), ListFormatterOptions::default())
                .map_err(|_| unknown())?,
            plurals: PluralRules::try_new((&locale).into(), plurals).map_err(|_| unknown())?,
        };
        Ok(Self {
            tag: tag.to_owned(),
            strings,
            rules: Arc::new(rules),
        })
    }

    /// Returns the language with a tenant's own UI strings, and with the rules of the tenant's tag: January has different names in `de-AT` and `de`.
    #[must_use]
    pub(crate) fn of_tenant(&self, tag: &str, own: &Strings) -> Self {
        let mut strings = self.strings.clone();
        strings.extend(own.iter().map(|(key, text)| (key.clone(), text.clone())));
        Self::new(tag, strings.clone()).unwrap_or_else(|_| Self {
            tag: self.tag.clone(),
            strings,
            rules: Arc::clone(&self.rules),
        })
    }

    /// Returns its tag (BCP 47).
    #[must_use]
    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }

    /// Whether the language is written from right to left.
    #[must_use]
    pub(crate) fn is_right_to_left(&self) -> bool {
        is_right_to_left(&self.tag)
    }

    /// Returns the value of `dir` for the language: `ltr` or `rtl`.
    pub(crate) fn direction(&self) -> &'static str {
        match self.is_right_to_left() {
            true => "rtl",
            false => "ltr",
        }
    }

    /// Returns the plural forms that the language needs and a string lacks, with the key of the string.
    pub(crate) fn missing_forms(&self) -> Vec<(&str, &'static str)> {
        let texts = self.strings.iter().filter_map(|(key, text)| match text {
            Text::Plural(forms) => Some((key.as_str(), forms)),
            Text::One(_) => None,
        });
        texts
            .flat_map(|(key, forms)| {
                let needed = self.rules.plurals.categories().map(category);
                let missing = needed.filter(|needed| !forms.contains_key(needed));
                missing.map(move |form| (key, form))
            })
            .collect()
    }

    /// Returns a UI string without placeholders. Returns the key if it does not exist, which [`content::theme::required_strings`] rules out.
    pub(crate) fn ui_string(&self, key: &str) -> String {
        self.text(key, &BTreeMap::new())
            .unwrap_or_else(|_| key.to_owned())
    }

    /// Returns the language's own name, such as `Deutsch`, or its tag if the theme has no name.
    pub(crate) fn own_name(&self) -> String {
        self.text("language.name", &BTreeMap::new())
            .unwrap_or_else(|_| self.tag.clone())
    }

    /// Returns a UI string with one placeholder.
    pub(crate) fn ui_string_with(&self, key: &str, name: &str, value: &str) -> String {
        let arguments = [(name.to_owned(), Argument::Text(value.to_owned()))].into();
        self.text(key, &arguments)
            .unwrap_or_else(|_| key.to_owned())
    }

    /// Returns a UI string with its placeholders filled in.
    ///
    /// # Errors
    /// Returns a message for the theme's author about a missing or wrong argument.
    pub(crate) fn text(
        &self,
        key: &str,
        arguments: &BTreeMap<String, Argument>,
    ) -> Result<String, String> {
        let Some(text) = self.strings.get(key) else {
            let known = self.strings.keys().map(String::as_str);
            let hint = content::report::hint_for(key, known);
            return Err(format!("the theme has no UI string `{key}`: {hint}"));
        };
        let takes = |name: &str| name == COUNT || text.placeholders().contains_key(name);
        let unknown = arguments.keys().find(|name| !takes(name));
        if let Some(name) = unknown {
            return Err(format!("`{key}` has no placeholder `{name}`"));
        }
        let pattern = match text {
            Text::One(pattern) => pattern,
            Text::Plural(forms) => {
                let Some(Argument::Number(count)) = arguments.get(COUNT) else {
                    return Err(format!(
                        "`{key}` has plural forms: pass `{COUNT}`, a whole number"
                    ));
                };
                let category = category(self.rules.plurals.category_for(*count));
                let form = forms.get(category).or_else(|| forms.get("other"));
                form.ok_or_else(|| format!("`{key}` has no plural form `other`"))?
            }
        };
        self.fill(key, pattern, arguments)
    }

    fn fill(
        &self,
        key: &str,
        pattern: &Pattern,
        arguments: &BTreeMap<String, Argument>,
    ) -> Result<String, String> {
        let mut filled = String::new();
        for piece in &pattern.pieces {
            let (name, kind) = match piece {
                MessagePiece::Words(words) => {
                    filled.push_str(words);
                    continue;
                }
                MessagePiece::Placeholder(name, kind) => (name, kind),
            };
            let written = match (kind, arguments.get(name)) {
                (_, None) => return Err(format!("`{key}` needs a value for `{name}`")),
                (ArgumentKind::Text, Some(Argument::Text(text))) => text.clone(),
                (ArgumentKind::Text, Some(Argument::Number(number))) => number.to_string(),
                (ArgumentKind::Number, Some(Argument::Number(number))) => self.number(*number),
                (ArgumentKind::Date, Some(Argument::Text(text))) => match text.parse() {
                    Ok(day) => self.day(day),
                    Err(_) => {
                        return Err(format!("`{key}`: `{name}` is not a valid date: `{text}`"));
                    }
                },
                (ArgumentKind::List, Some(Argument::List(items))) => self.list(items),
                (kind, Some(_)) => {
                    return Err(format!("`{key}`: `{name}` is not a {}", of_kind(*kind)));
                }
            };
            filled.push_str(&written);
        }
        Ok(filled)
    }

    /// Returns all UI strings below a key as a nested object, with their placeholders.
    pub(crate) fn below(&self, prefix: &str) -> Json {
        let prefix = format!("{prefix}.");
        let mut found = Map::new();
        let all = self.strings.range(prefix.clone()..);
        for (key, text) in all.take_while(|(key, _)| key.starts_with(&prefix)) {
            insert(&mut found, &key[prefix.len()..], text.written());
        }
        found.into()
    }

    /// Formats a date: `July 21, 2025`.
    pub(crate) fn date(&self, date: Date) -> String {
        self.day(date.day())
    }

    fn day(&self, day: jiff::civil::Date) -> String {
        let number = |part: i8| u8::try_from(part).unwrap_or(1);
        let date =
            Day::try_new_gregorian(day.year().into(), number(day.month()), number(day.day()));
        match date {
            Ok(date) => self.rules.days.format(&date).to_string(),
            Err(_) => day.to_string(),
        }
    }

    fn number(&self, number: i64) -> String {
        self.rules
            .numbers
            .format(&Decimal::from(number))
            .to_string()
    }

    fn list(&self, items: &[String]) -> String {
        self.rules.lists.format(items.iter()).to_string()
    }
}

fn insert(map: &mut Map<String, Json>, key: &str, value: Json) {
    match key.split_once('.') {
        None => drop(map.insert(key.to_owned(), value)),
        Some((first, rest)) => {
            let inner = map
                .entry(first.to_owned())
                .or_insert_with(|| Map::new().into());
            if let Json::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

const fn category(category: PluralCategory) -> &'static str {
    match category {
        PluralCategory::Zero => "zero",
        PluralCategory::One => "one",
        PluralCategory::Two => "two",
        PluralCategory::Few => "few",
        PluralCategory::Many => "many",
        PluralCategory::Other => "other",
    }
}

const fn of_kind(kind: ArgumentKind) -> &'static str {
    match kind {
        ArgumentKind::Text => "text",
        ArgumentKind::Number => "whole number",
        ArgumentKind::Date => "date",
        ArgumentKind::List => "list of texts",
    }
}

/// Scripts written from right to left, by code (ISO 15924).
const RIGHT_TO_LEFT_SCRIPTS: [&str; 8] = [
    "Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Syrc", "Thaa",
];

/// Languages that use these scripts if their tag names no script.
const RIGHT_TO_LEFT_LANGUAGES: [&str; 14] = [
    "ar", "arc", "ckb", "dv", "fa", "he", "iw", "lrc", "nqo", "ps", "sd", "ug", "ur", "yi",
];

/// Whether the language of a tag (BCP 47) is written from right to left.
fn is_right_to_left(tag: &str) -> bool {
    let Ok(locale) = tag.parse::<Locale>() else {
        return false;
    };
    match locale.id.script {
        Some(script) => RIGHT_TO_LEFT_SCRIPTS.contains(&script.as_str()),
        None => RIGHT_TO_LEFT_LANGUAGES.contains(&locale.id.language.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(tag: &str) -> Language {
        let yaml = "opened: \"{day, date}: {names, list}\"\nentries: {one: \"{count, number} thing\", few: \"{count, number} few\", other: \"{count, number} things\"}\n";
        let node = content::yaml::parse(yaml, 1).expect("YAML");
        Language::new(tag, content::theme::strings::read(&node).0).expect("a language")
    }

    fn opened(tag: &str) -> String {
        let names = ["a", "b", "c"].map(ToOwned::to_owned).to_vec();
        let arguments = BTreeMap::from([
            ("day".to_owned(), Argument::Text("2023-05-01".to_owned())),
            ("names".to_owned(), Argument::List(names)),
        ]);
        language(tag)
            .text("opened", &arguments)
            .expect("all arguments")
    }

    #[test]
    fn dates_and_lists_follow_the_language() {
        assert_eq!(opened("en"), "May 1, 2023: a, b, and c");
        assert_eq!(opened("en-GB"), "1 May 2023: a, b and c");
        assert_eq!(opened("de"), "1. Mai 2023: a, b und c");
        assert_eq!(opened("ja"), "2023年5月1日: a、b、c");
    }

    #[test]
    fn plural_form_follows_the_language() {
        let count = |tag: &str, count: i64| {
            let arguments = BTreeMap::from([("count".to_owned(), Argument::Number(count))]);
            language(tag).text("entries", &arguments).expect("a form")
        };
        assert_eq!(count("en", 1), "1 thing");
        assert_eq!(count("en", 1200), "1,200 things");
        assert_eq!(count("de", 1200), "1.200 things");
        assert_eq!(count("fr", 0), "0 thing");
        assert_eq!(count("pl", 3), "3 few");
    }

    #[test]
    fn language_needs_all_its_plural_forms() {
        assert_eq!(language("en").missing_forms(), []);
        assert_eq!(language("ar").missing_forms().len(), 3);
        assert_eq!(language("pl").missing_forms(), [("entries", "many")]);
    }

    #[test]
    fn missing_and_wrong_arguments_are_reported() {
        let language = language("en");
        let text = |key: &str, arguments: &[(&str, Argument)]| {
            let arguments = arguments.iter().cloned();
            let arguments = arguments
                .map(|(name, value)| (name.to_owned(), value))
                .collect();
            language.text(key, &arguments).expect_err("wrong")
        };
        assert_eq!(
            text("openned", &[]),
            "the theme has no UI string `openned`: did you mean `opened`?"
        );
        assert_eq!(text("opened", &[]), "`opened` needs a value for `day`");
        assert_eq!(
            text("opened", &[("day", Argument::Number(1))]),
            "`opened`: `day` is not a date"
        );
        assert_eq!(
            text("entries", &[]),
            "`entries` has plural forms: pass `count`, a whole number"
        );
        assert_eq!(
            text("entries", &[("who", Argument::Number(1))]),
            "`entries` has no placeholder `who`"
        );
        assert!(Language::new("x y", Strings::new()).is_err());
    }

    #[test]
    fn direction_follows_the_script_or_else_the_language() {
        for tag in [
            "ar",
            "ar-EG",
            "he",
            "fa-IR",
            "ur",
            "yi",
            "az-Arab",
            "pa-Arab-PK",
        ] {
            assert!(is_right_to_left(tag), "{tag}");
        }
        for tag in ["en", "de-AT", "ja", "ar-Latn", "az", "fa-Cyrl", "no tag"] {
            assert!(!is_right_to_left(tag), "{tag}");
        }
    }
}
