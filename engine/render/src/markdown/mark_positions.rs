//! Finds delimiters in a text, and remembers the next position of each.
//!
//! Searching for the end of every delimiter from scratch takes quadratic time on a text that consists of delimiters.
//!
//! **Invariant:** if positions are requested in ascending order, the search for a delimiter visits each byte once.

/// The next known position of each delimiter in a text.
pub(super) struct MarkPositions<'a> {
    text: &'a str,
    known: Vec<NextMark>,
    /// The number of bytes visited, for tests.
    pub(super) steps: usize,
}

/// The first position of a delimiter at or after byte `from`.
struct NextMark {
    mark: &'static str,
    from: usize,
    place: Option<usize>,
}

impl<'a> MarkPositions<'a> {
    /// Creates the index of a text.
    pub(super) const fn of(text: &'a str) -> Self {
        Self {
            text,
            known: Vec::new(),
            steps: 0,
        }
    }

    /// Returns the first position of `mark` at or after byte `at`.
    pub(super) fn next(&mut self, mark: &'static str, at: usize) -> Option<usize> {
        let index = self.known.iter().position(|known| known.mark == mark);
        let Some(index) = index else {
            let place = self.find(mark, at, self.text.len());
            self.known.push(NextMark {
                mark,
                from: at,
                place,
            });
            return place;
        };
        let (from, place) = (self.known[index].from, self.known[index].place);
        if at < from {
            // The caller went back a few bytes, so search these and reuse the known position.
            let end = (from + mark.len() - 1).min(self.text.len());
            return self.find(mark, at, end).or(place);
        }
        if place.is_none_or(|place| at <= place) {
            return place;
        }
        let place = self.find(mark, at, self.text.len());
        self.known[index] = NextMark {
            mark,
            from: at,
            place,
        };
        place
    }

    fn find(&mut self, mark: &str, from: usize, to: usize) -> Option<usize> {
        let bytes = self.text.as_bytes().get(from..to)?;
        let found = memchr::memmem::find(bytes, mark.as_bytes());
        self.steps += found.map_or(bytes.len(), |found| found + mark.len());
        found.map(|found| from + found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn position_equals_that_of_a_plain_search(text in "[ab]{0,20}", asked in proptest::collection::vec(0_usize..20, 0..20)) {
            let mut marks = MarkPositions::of(&text);
            for at in asked.into_iter().filter(|at| *at <= text.len()) {
                for mark in ["a", "ab", "bb"] {
                    let found = text[at..].find(mark).map(|found| at + found);
                    prop_assert_eq!(marks.next(mark, at), found, "{} of {} from {}", mark, text, at);
                }
            }
        }
    }
}
