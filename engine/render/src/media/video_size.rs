//! How large a film is shown, from its own header (ISO/IEC 14496-12).
//!
//! Read here and not by a library: those that there are read the tables of all samples, too, and believe the numbers in them.

use bytes::Bytes;

use release::payload::Payload;

/// Bytes of a box's size and kind.
const HEADER: usize = 8;
/// The display matrix begins here in a track header of version 0, and twelve bytes later in one of version 1, whose times are longer.
const MATRIX: usize = 40;
const LONGER_TIMES: usize = 12;
const MATRIX_LENGTH: usize = 36;

/// The most boxes of a film that are looked at, and the most bytes of the one that describes it.
const MAX_BOXES: usize = 256;
const MAX_MOVIE_BYTES: u64 = 32 << 20;

/// Width and height of the first track that shows something.
#[must_use]
pub(crate) fn size(film: &Payload) -> Option<(u32, u32)> {
    let movie = movie(film)?;
    let tracks = Boxes(&movie).filter(|(kind, _)| kind == b"trak");
    let headers = tracks.filter_map(|(_, track)| Boxes(track).find(|(kind, _)| kind == b"tkhd"));
    headers
        .filter_map(|(_, header)| shown(header))
        .find(|(width, height)| *width > 0 && *height > 0)
}

/// The content of the box that describes the film. Of the others only the headers are read: the film may be too large for memory.
fn movie(film: &Payload) -> Option<Bytes> {
    let mut begin = 0;
    for _ in 0..MAX_BOXES {
        let header = film.read(begin..film.len().min(begin + HEADER as u64 + 8));
        let header = header.ok()??;
        let size = u32::from_be_bytes(*header.first_chunk()?);
        let (length_of_header, length) = match size {
            // It goes on to the end.
            0 => (HEADER, film.len() - begin),
            1 => {
                let size = u64::from_be_bytes(*header.get(HEADER..)?.first_chunk()?);
                (HEADER + 8, size)
            }
            size => (HEADER, size.into()),
        };
        let start = begin + length_of_header as u64;
        let end = begin.checked_add(length)?;
        if header.get(4..8)? == b"moov" {
            let is_small = length <= MAX_MOVIE_BYTES;
            return is_small.then(|| film.read(start..end).ok())??;
        }
        // A box that is shorter than its header would never end.
        begin = (end >= start && end <= film.len()).then_some(end)?;
    }
    None
}

/// What a track header says (section 8.3.2). A film that was taken upright lies, and is turned by its matrix.
fn shown(header: &[u8]) -> Option<(u32, u32)> {
    let start = match header.first()? {
        0 => MATRIX,
        _ => MATRIX + LONGER_TIMES,
    };
    let number = |at: usize| Some(u32::from_be_bytes(*header.get(at..)?.first_chunk()?));
    let is_turned = number(start)? == 0 && number(start + 4)? != 0;
    // Numbers with 16 bits behind the point.
    let width = number(start + MATRIX_LENGTH)? >> 16;
    let height = number(start + MATRIX_LENGTH + 4)? >> 16;
    Some(match is_turned {
        true => (height, width),
        false => (width, height),
    })
}

/// The boxes of a part of a film, with what is in them (section 4.2).
struct Boxes<'a>(&'a [u8]);

impl<'a> Iterator for Boxes<'a> {
    type Item = ([u8; 4], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let size = u32::from_be_bytes(*self.0.first_chunk()?);
        let kind = *self.0.get(4..)?.first_chunk()?;
        let (start, end) = match size {
            // It goes on to the end.
            0 => (HEADER, self.0.len()),
            1 => {
                let size = u64::from_be_bytes(*self.0.get(HEADER..)?.first_chunk()?);
                (HEADER + 8, usize::try_from(size).ok()?)
            }
            size => (HEADER, usize::try_from(size).ok()?),
        };
        let content = self.0.get(start..end)?;
        self.0 = self.0.get(end..)?;
        Some((kind, content))
    }
}

#[cfg(test)]
mod tests {
    use super::{HEADER, LONGER_TIMES, MATRIX, MATRIX_LENGTH};

    fn size(film: &[u8]) -> Option<(u32, u32)> {
        super::size(&film.to_vec().into())
    }

    fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let size = u32::try_from(HEADER + content.len()).expect("small");
        [&size.to_be_bytes()[..], kind, content].concat()
    }

    fn film(version: u8, turned: bool, width: u32, height: u32) -> Vec<u8> {
        let start = MATRIX + usize::from(version) * LONGER_TIMES;
        let mut header = vec![0; start + MATRIX_LENGTH + 8];
        header[0] = version;
        let one = if turned { start + 4 } else { start };
        header[one..one + 4].copy_from_slice(&0x1_0000_u32.to_be_bytes());
        let sizes = start + MATRIX_LENGTH;
        header[sizes..sizes + 4].copy_from_slice(&(width << 16).to_be_bytes());
        header[sizes + 4..].copy_from_slice(&(height << 16).to_be_bytes());
        let sound = boxed(b"trak", &boxed(b"tkhd", &[0; 84]));
        let pictures = boxed(b"trak", &boxed(b"tkhd", &header));
        let movie = boxed(b"moov", &[sound, pictures].concat());
        [boxed(b"ftyp", b"isom"), boxed(b"mdat", &[9; 40]), movie].concat()
    }

    #[test]
    fn a_film_says_how_large_it_is_shown() {
        assert_eq!(size(&film(0, false, 640, 360)), Some((640, 360)));
        assert_eq!(size(&film(1, false, 640, 360)), Some((640, 360)));
        assert_eq!(size(&film(0, true, 640, 360)), Some((360, 640)));
    }

    #[test]
    fn what_is_no_film_says_nothing() {
        let whole = film(0, false, 640, 360);
        for length in 0..whole.len() {
            assert_eq!(size(&whole[..length]), None, "{length}");
        }
        assert_eq!(size(&[0xff; 64]), None);
        let empty = [0, 0, 0, 1, b'm', b'o', b'o', b'v', 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(size(&empty), None);
    }
}
