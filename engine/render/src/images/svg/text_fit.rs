//! Breaks a text into lines that fit a box, in the largest possible font size. SVG has no line breaks.
//!
//! Templates call `fit(text=..., width=..., height=..., family=..., weight=..., largest=..., smallest=..., line=...)` and get `size` and `lines`.

use serde::Serialize;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::images::svg::fonts::Fonts;
use content::name::nfc;

/// The box for a text. All lengths are in user units of the SVG.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextBox {
    pub(crate) width: f32,
    pub(crate) height: f32,
    /// The maximum font size, which is tried first.
    pub(crate) largest: f32,
    /// The minimum font size. A text that does not fit at this size is cut.
    pub(crate) smallest: f32,
    /// The line height, in units of the font size.
    pub(crate) line: f32,
}

impl TextBox {
    /// Checks that all values are within their ranges. A comparison with NaN fails.
    pub(crate) fn check(&self) -> Result<(), String> {
        let sides = [
            ("width", self.width, f32::MIN_POSITIVE),
            ("height", self.height, f32::MIN_POSITIVE),
            ("largest", self.largest, 1.0),
            ("smallest", self.smallest, 1.0),
            ("line", self.line, 0.1),
        ];
        for (name, value, least) in sides {
            if !(value >= least && value <= MAX_PIXELS) {
                let least = if least < 0.1 {
                    "above 0".to_owned()
                } else {
                    format!("at least {least}")
                };
                return Err(format!(
                    "`{value}` is not a valid `{name}` of `fit`: use a number {least} and at most {MAX_PIXELS}"
                ));
            }
        }
        if self.smallest > self.largest {
            return Err(format!(
                "the `smallest` of `fit` is larger than `largest`: {} is more than {}",
                self.smallest, self.largest
            ));
        }
        Ok(())
    }
}

/// A text that fits its box.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FittedText {
    /// The font size.
    size: f32,
    /// The lines, as equal in length as possible.
    lines: Vec<String>,
}

/// The ellipsis at the end of a text that was cut.
const ELLIPSIS: &str = "\u{2026}";

/// The step between font sizes that are tried.
const SIZE_STEP: f32 = 2.0;

/// Limit on the sides of the box and on the font size. A social image is 1200 pixels wide.
const MAX_PIXELS: f32 = 10_000.0;

/// Measures texts in one font.
pub(crate) struct TextMeasure<'a> {
    pub(crate) fonts: &'a Fonts,
    pub(crate) family: &'a str,
    pub(crate) weight: u16,
}

impl TextMeasure<'_> {
    fn widths(&self, texts: &[String]) -> Option<Vec<f32>> {
        self.fonts.widths(self.family, self.weight, texts)
    }

    fn width(&self, text: &str) -> Option<f32> {
        self.widths(&[text.to_owned()])?.pop()
    }
}

/// A word and its width in units of the font size.
type Word = (String, f32);

/// Fits a text into a box. Returns `None` if the font does not exist.
pub(crate) fn fit(text: &str, room: TextBox, measure: &TextMeasure<'_>) -> Option<FittedText> {
    // Fonts have letters with their marks composed, and seldom the marks alone.
    let text = nfc(text);
    let words: Vec<String> = text.split_whitespace().map(ToOwned::to_owned).collect();
    let widths = measure.widths(&words)?;
    let words: Vec<Word> = words.into_iter().zip(widths).collect();
    let space = measure.width(" ")?;
    let widest = words.iter().map(|(_, width)| *width).fold(0.0, f32::max);
    let at = |size: f32| {
        let width = room.width / size;
        let lines = wrap(&words, space, width);
        let fits = widest <= width && lines.len() as f32 * room.line * size <= room.height;
        fits.then_some((width, lines))
    };
    // A text that fits at one size fits at every smaller size, so a binary search finds the largest. The casts are exact, because the numbers are small.
    let size_of = |step: u16| room.largest - SIZE_STEP * f32::from(step);
    let steps = ((room.largest - room.smallest) / SIZE_STEP) as u16;
    let (mut step, mut end) = (0, steps + 1);
    while step < end {
        let middle = step.midpoint(end);
        match at(size_of(middle)) {
            Some(_) => end = middle,
            None => step = middle + 1,
        }
    }
    if step <= steps
        && let Some((width, lines)) = at(size_of(step))
    {
        let lines = evened(&words, space, width, lines);
        return Some(FittedText {
            size: size_of(step),
            lines: lines.iter().map(|line| joined(line)).collect(),
        });
    }
    cut(&words, space, room, measure)
}

/// Fits a text at the minimum size: breaks words that are too long, and cuts text that does not fit.
fn cut(words: &[Word], space: f32, room: TextBox, measure: &TextMeasure<'_>) -> Option<FittedText> {
    let size = room.smallest;
    let width = room.width / size;
    let mut pieces: Vec<Word> = Vec::new();
    for (word, own) in words {
        if *own <= width {
            pieces.push((word.clone(), *own));
            continue;
        }
        let letters: Vec<String> = word.graphemes(true).map(ToOwned::to_owned).collect();
        let widths = measure.widths(&letters)?;
        let mut piece = (String::new(), 0.0);
        for (letter, own) in letters.iter().zip(widths) {
            if piece.1 + own > width && !piece.0.is_empty() {
                pieces.push(std::mem::replace(&mut piece, (String::new(), 0.0)));
            }
            piece = (piece.0 + letter, piece.1 + own);
        }
        pieces.push(piece);
    }
    let lines = wrap(&pieces, space, width);
    // The box holds a small, non-negative number of lines.
    let most = ((room.height / (room.line * size)) as usize).max(1);
    let mut shown: Vec<String> = lines.iter().take(most).map(|line| joined(line)).collect();
    if lines.len() > most
        && let Some(last) = shown.last_mut()
    {
        let rest = measure.width(ELLIPSIS)?;
        while measure.width(last)? + rest > width && last.pop().is_some() {}
        last.truncate(last.trim_end().len());
        last.push_str(ELLIPSIS);
    }
    Some(FittedText { size, lines: shown })
}

/// Breaks words into lines, as many words per line as fit.
fn wrap(words: &[Word], space: f32, width: f32) -> Vec<Vec<&Word>> {
    let mut lines: Vec<Vec<&Word>> = Vec::new();
    let mut taken = 0.0;
    for word in words {
        let with_word = taken + space + word.1;
        match lines.last_mut() {
            Some(line) if with_word <= width => {
                line.push(word);
                taken = with_word;
            }
            _ => {
                lines.push(vec![word]);
                taken = word.1;
            }
        }
    }
    lines
}

/// Breaks words into the same number of lines in the narrowest column, so that the lines are equally long.
fn evened<'w>(
    words: &'w [Word],
    space: f32,
    width: f32,
    lines: Vec<Vec<&'w Word>>,
) -> Vec<Vec<&'w Word>> {
    const TRIES: u16 = 40;
    let count = lines.len();
    let widest = words.iter().map(|(_, width)| *width).fold(0.0, f32::max);
    (0..TRIES)
        .map(|step| widest + (width - widest) * f32::from(step) / f32::from(TRIES))
        .map(|narrow| wrap(words, space, narrow))
        .find(|narrow| narrow.len() <= count)
        .unwrap_or(lines)
}

fn joined(line: &[&Word]) -> String {
    let words: Vec<&str> = line.iter().map(|(word, _)| word.as_str()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: TextBox = TextBox {
        width: 700.0,
        height: 330.0,
        largest: 124.0,
        smallest: 52.0,
        line: 0.95,
    };

    fn fonts() -> Fonts {
        let (theme, report) = content::theme::load("base", &content::theme::embedded());
        Fonts::of(&theme.unwrap_or_else(|| panic!("{report:?}")))
    }

    fn set(text: &str) -> (FittedText, f32) {
        let fonts = fonts();
        let measure = TextMeasure {
            fonts: &fonts,
            family: "big-shoulders",
            weight: 800,
        };
        let fitted = fit(text, ROOM, &measure).expect("a font");
        let widths = measure.widths(&fitted.lines).expect("widths");
        let widest = widths.into_iter().fold(0.0, f32::max) * fitted.size;
        (fitted, widest)
    }

    #[test]
    fn title_stays_within_its_box() {
        for text in [
            "Terms",
            "Build Web, Mobile, TV, and Game Applications",
            "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
            &"word ".repeat(200),
            &"W".repeat(500),
            "",
        ] {
            let (fitted, widest) = set(text);
            let height = fitted.lines.len() as f32 * ROOM.line * fitted.size;
            assert!(widest <= ROOM.width, "{text}: {widest} {fitted:?}");
            assert!(height <= ROOM.height, "{text}: {height} {fitted:?}");
            assert!(fitted.size >= ROOM.smallest && fitted.size <= ROOM.largest);
        }
    }

    #[test]
    fn short_titles_are_large_and_long_ones_end_in_an_ellipsis() {
        let (short, _) = set("Terms");
        assert_eq!(
            (short.size, short.lines),
            (ROOM.largest, vec!["Terms".to_owned()])
        );
        let (long, _) = set(&"word ".repeat(200));
        assert!(
            long.lines
                .last()
                .is_some_and(|line| line.ends_with(ELLIPSIS))
        );
    }

    #[test]
    fn lines_are_equally_long() {
        let (fitted, widest) = set("In-app purchase or card form");
        let fonts = fonts();
        let measure = TextMeasure {
            fonts: &fonts,
            family: "big-shoulders",
            weight: 800,
        };
        let widths = measure.widths(&fitted.lines).expect("widths");
        let narrowest = widths.into_iter().fold(f32::MAX, f32::min) * fitted.size;
        assert!(
            fitted.lines.len() > 1 && narrowest > widest / 2.0,
            "{fitted:?}"
        );
    }

    /// Finds the size by trying every size in turn.
    fn tried(text: &str, room: TextBox, measure: &TextMeasure<'_>) -> f32 {
        let mut size = room.largest;
        while size >= room.smallest {
            let one = TextBox {
                largest: size,
                smallest: size,
                ..room
            };
            let fitted = fit(text, one, measure).expect("a font");
            let shown = fitted.lines.join(" ");
            let words: Vec<&str> = text.split_whitespace().collect();
            if shown == words.join(" ") {
                return size;
            }
            size -= SIZE_STEP;
        }
        room.smallest
    }

    #[test]
    fn binary_search_finds_the_same_size_as_trying_each() {
        let fonts = fonts();
        let measure = TextMeasure {
            fonts: &fonts,
            family: "big-shoulders",
            weight: 800,
        };
        for words in [0, 1, 3, 9, 20, 39] {
            let text = ["Terms", "of", "Service", "and", "Privacy"][..]
                .iter()
                .cycle()
                .take(words)
                .copied()
                .collect::<Vec<_>>()
                .join(" ");
            for (largest, smallest) in [(124.0, 52.0), (124.7, 51.3), (60.0, 60.0)] {
                let room = TextBox {
                    largest,
                    smallest,
                    ..ROOM
                };
                let found = fit(&text, room, &measure).expect("a font").size;
                assert_eq!(found, tried(&text, room, &measure), "{text} {room:?}");
            }
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert_eq!(ROOM.check(), Ok(()));
        let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e9, 0.0, -1.0];
        for value in bad {
            for (name, room) in [
                (
                    "width",
                    TextBox {
                        width: value,
                        ..ROOM
                    },
                ),
                (
                    "height",
                    TextBox {
                        height: value,
                        ..ROOM
                    },
                ),
                (
                    "largest",
                    TextBox {
                        largest: value,
                        ..ROOM
                    },
                ),
                (
                    "smallest",
                    TextBox {
                        smallest: value,
                        ..ROOM
                    },
                ),
                (
                    "line",
                    TextBox {
                        line: value,
                        ..ROOM
                    },
                ),
            ] {
                let problem = room.check().expect_err("refused");
                assert!(problem.contains(&format!("`{name}`")), "{problem}");
            }
        }
        let turned = TextBox {
            smallest: 200.0,
            ..ROOM
        };
        assert!(turned.check().is_err());
    }
}
