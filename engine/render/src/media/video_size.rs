//! Reads the displayed size of a video from its header (ISO/IEC 14496-12).
//!
//! The available libraries also read the tables of all samples and trust the numbers in them, so this module reads the header itself.

use bytes::Bytes;

use release::payload::Payload;

/// The bytes of a box's size and type.
const BOX_HEADER_BYTES: usize = 8;
/// The offset of the display matrix in a track header of version 0, in bytes.
const MATRIX_OFFSET: usize = 40;
/// The bytes that a track header of version 1 has before the matrix in addition, because its times are longer.
const VERSION_1_EXTRA_BYTES: usize = 12;
/// The size of the display matrix, in bytes.
const MATRIX_BYTES: usize = 36;

/// Limit on the boxes that are visited.
const MAX_BOXES: usize = 256;
/// Limit on the movie box, in bytes.
const MAX_MOVIE_BYTES: u64 = 32 << 20;

/// Returns width and height of the first track with a picture, in pixels.
#[must_use]
pub(crate) fn size(film: &Payload) -> Option<(u32, u32)> {
    let movie = movie(film)?;
    let tracks = Boxes(&movie).filter(|(kind, _)| kind == b"trak");
    let headers = tracks.filter_map(|(_, track)| Boxes(track).find(|(kind, _)| kind == b"tkhd"));
    headers
        .filter_map(|(_, header)| shown(header))
        .find(|(width, height)| *width > 0 && *height > 0)
}

/// Returns the content of the movie box. Only the headers of other boxes are read, because the file may be too large for memory.
fn movie(film: &Payload) -> Option<Bytes> {
    let mut begin = 0;
    for _ in 0..MAX_BOXES {
        let header = film.read(begin..film.len().min(begin + BOX_HEADER_BYTES as u64 + 8));
        let header = header.ok()??;
        let size = u32::from_be_bytes(*header.first_chunk()?);
        let (length_of_header, length) = match size {
            // The box extends to the end of the file.
            0 => (BOX_HEADER_BYTES, film.len() - begin),
            1 => {
                let size = u64::from_be_bytes(*header.get(BOX_HEADER_BYTES..)?.first_chunk()?);
                (BOX_HEADER_BYTES + 8, size)
            }
            size => (BOX_HEADER_BYTES, size.into()),
        };
        let start = begin + length_of_header as u64;
        let end = begin.checked_add(length)?;
        if header.get(4..8)? == b"moov" {
            let is_small = length <= MAX_MOVIE_BYTES;
            return is_small.then(|| film.read(start..end).ok())??;
        }
        // A box that is shorter than its header would make the loop endless.
        begin = (end >= start && end <= film.len()).then_some(end)?;
    }
    None
}

/// Returns the displayed size in a track header (section 8.3.2). Videos taken upright are stored sideways and turned by the matrix.
fn shown(header: &[u8]) -> Option<(u32, u32)> {
    let start = match header.first()? {
        0 => MATRIX_OFFSET,
        _ => MATRIX_OFFSET + VERSION_1_EXTRA_BYTES,
    };
    let number = |at: usize| Some(u32::from_be_bytes(*header.get(at..)?.first_chunk()?));
    let is_turned = number(start)? == 0 && number(start + 4)? != 0;
    // Fixed-point numbers with 16 fractional bits.
    let width = number(start + MATRIX_BYTES)? >> 16;
    let height = number(start + MATRIX_BYTES + 4)? >> 16;
    Some(match is_turned {
        true => (height, width),
        false => (width, height),
    })
}

/// Iterates over the boxes in a part of a file, by type and content (section 4.2).
struct Boxes<'a>(&'a [u8]);

impl<'a> Iterator for Boxes<'a> {
    type Item = ([u8; 4], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let size = u32::from_be_bytes(*self.0.first_chunk()?);
        let kind = *self.0.get(4..)?.first_chunk()?;
        let (start, end) = match size {
            // The box extends to the end.
            0 => (BOX_HEADER_BYTES, self.0.len()),
            1 => {
                let size = u64::from_be_bytes(*self.0.get(BOX_HEADER_BYTES..)?.first_chunk()?);
                (BOX_HEADER_BYTES + 8, usize::try_from(size).ok()?)
            }
            size => (BOX_HEADER_BYTES, usize::try_from(size).ok()?),
        };
        let content = self.0.get(start..end)?;
        self.0 = self.0.get(end..)?;
        Some((kind, content))
    }
}

#[cfg(test)]
mod tests {
    use super::{BOX_HEADER_BYTES, MATRIX_BYTES, MATRIX_OFFSET, VERSION_1_EXTRA_BYTES};

    fn size(film: &[u8]) -> Option<(u32, u32)> {
        super::size(&film.to_vec().into())
    }

    fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let size = u32::try_from(BOX_HEADER_BYTES + content.len()).expect("small");
        [&size.to_be_bytes()[..], kind, content].concat()
    }

    fn film(version: u8, turned: bool, width: u32, height: u32) -> Vec<u8> {
        let start = MATRIX_OFFSET + usize::from(version) * VERSION_1_EXTRA_BYTES;
        let mut header = vec![0; start + MATRIX_BYTES + 8];
        header[0] = version;
        let one = if turned { start + 4 } else { start };
        header[one..one + 4].copy_from_slice(&0x1_0000_u32.to_be_bytes());
        let sizes = start + MATRIX_BYTES;
        header[sizes..sizes + 4].copy_from_slice(&(width << 16).to_be_bytes());
        header[sizes + 4..].copy_from_slice(&(height << 16).to_be_bytes());
        let sound = boxed(b"trak", &boxed(b"tkhd", &[0; 84]));
        let pictures = boxed(b"trak", &boxed(b"tkhd", &header));
        let movie = boxed(b"moov", &[sound, pictures].concat());
        [boxed(b"ftyp", b"isom"), boxed(b"mdat", &[9; 40]), movie].concat()
    }

    #[test]
    fn video_size_is_the_displayed_size() {
        assert_eq!(size(&film(0, false, 640, 360)), Some((640, 360)));
        assert_eq!(size(&film(1, false, 640, 360)), Some((640, 360)));
        assert_eq!(size(&film(0, true, 640, 360)), Some((360, 640)));
    }

    #[test]
    fn incomplete_or_invalid_video_has_no_size() {
        let whole = film(0, false, 640, 360);
        for length in 0..whole.len() {
            assert_eq!(size(&whole[..length]), None, "{length}");
        }
        assert_eq!(size(&[0xff; 64]), None);
        let empty = [0, 0, 0, 1, b'm', b'o', b'o', b'v', 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(size(&empty), None);
    }
}
