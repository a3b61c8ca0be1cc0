//! What a drawing takes once it is read: memory at one time, and steps in all, told before it is drawn.
//!
//! This walks the tree that the renderer would walk, after all style sheets, references and defaults, and does its sums as the renderer does: a group with an opacity, a mask, a clip path, a filter or a blend mode is drawn on a layer of its own, and layers within layers are in memory at one time; a pattern's tile is drawn anew for each path that it fills; a path is followed along its edges, and its dashes are paths, too.
//! Drawing cannot be stopped once it has begun, so that what passes here is what bounds it.
//!
//! A step is about what one pixel of one colour takes, a nanosecond.

#[cfg(test)]
mod tests;

use std::fmt;

use resvg::tiny_skia::{IntRect, PathSegment, Point, Rect, Transform};
use resvg::usvg::{ClipPath, Group, Mask, Node, NonZeroRect, Paint, Path, Pattern, Tree};

/// The most bytes that are in use at one time: 16 layers of a large social image.
const MAX_BYTES: u64 = 64 << 20;
/// The most steps: a second or two of a processor. The largest of the theme's drawings takes a fiftieth.
const MAX_STEPS: u64 = 2_000_000_000;

/// Bytes of a pixel.
const PIXEL: u64 = 4;
/// Steps for every node, whatever it draws.
const NODE: u64 = 200;
/// Steps to follow an edge through one row of pixels, which the renderer divides in four.
const EDGE: u64 = 256;
/// Steps and bytes for every piece of a path.
const SEGMENT: u64 = 128;
/// Steps for every dash: a path of its own.
const DASH: u64 = 4_000;
/// A line has two edges.
const STROKE: u64 = 2;
/// Steps a pixel to make a layer, and to put it onto the one below.
const LAYER: u64 = 32;
/// Steps a pixel for every part of a filter.
const FILTER: u64 = 256;
/// Pictures that a filter keeps beside those of its parts.
const BESIDE: u64 = 4;

/// Why a drawing takes too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TooMuch(String);

impl fmt::Display for TooMuch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Adds up what a tree takes as a picture of this size.
///
/// # Errors
/// When that is more than a drawing may take, with what it is.
pub(crate) fn check(
    tree: &Tree,
    transform: Transform,
    width: u32,
    height: u32,
) -> Result<(), TooMuch> {
    let mut meter = Meter {
        bytes: 0,
        layers: 0,
        steps: 0,
        most: MAX_STEPS,
    };
    // As large as the renderer lets a layer become.
    let largest = IntRect::from_xywh(
        -2 * i32::try_from(width).unwrap_or(i32::MAX / 4),
        -2 * i32::try_from(height).unwrap_or(i32::MAX / 4),
        width.saturating_mul(5),
        height.saturating_mul(5),
    );
    let Some(largest) = largest else {
        return Err(TooMuch("the picture has no area".to_owned()));
    };
    let canvas = Canvas { width, height };
    meter.held(canvas.pixels() * PIXEL, |meter| {
        meter.nodes(tree.root(), canvas, largest, transform)
    })
}

/// What is drawn on.
#[derive(Debug, Clone, Copy)]
struct Canvas {
    width: u32,
    height: u32,
}

impl Canvas {
    fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// How many of its pixels lie in an area.
    fn covered(self, area: Rect) -> u64 {
        let overlap = |from: f32, to: f32, most: u32| {
            (to.min(most as f32) - from.max(0.0)).max(0.0).ceil() as u64 + 1
        };
        let wide = overlap(area.left(), area.right(), self.width);
        let high = overlap(area.top(), area.bottom(), self.height);
        (wide * high).min(self.pixels())
    }
}

struct Meter {
    /// In use now.
    bytes: u64,
    /// Drawn on now.
    layers: u32,
    steps: u64,
    most: u64,
}

impl Meter {
    fn step(&mut self, steps: u64) -> Result<(), TooMuch> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.most {
            return Err(TooMuch(format!(
                "the drawing takes more than {} million steps to draw: its areas, paths, dashes, patterns and filters come to too much",
                self.most / 1_000_000
            )));
        }
        Ok(())
    }

    /// Does something while so many bytes are in use.
    fn held(
        &mut self,
        bytes: u64,
        work: impl FnOnce(&mut Self) -> Result<(), TooMuch>,
    ) -> Result<(), TooMuch> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.layers += 1;
        if self.bytes > MAX_BYTES {
            return Err(TooMuch(format!(
                "the drawing has {} layers within one another here, which take more than {} MiB: every group with an opacity, a mask, a clip path, a filter or a blend mode is one, and every tile of a pattern",
                self.layers,
                MAX_BYTES >> 20
            )));
        }
        let done = work(self);
        self.bytes -= bytes;
        self.layers -= 1;
        done
    }

    fn nodes(
        &mut self,
        parent: &Group,
        canvas: Canvas,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), TooMuch> {
        for node in parent.children() {
            self.step(NODE)?;
            match node {
                Node::Group(group) => self.group(group, canvas, largest, transform)?,
                Node::Text(text) => self.group(text.flattened(), canvas, largest, transform)?,
                Node::Path(path) => self.path(path, canvas, largest, transform)?,
                // No drawing gets a picture.
                Node::Image(_) => {}
            }
        }
        Ok(())
    }

    fn group(
        &mut self,
        group: &Group,
        canvas: Canvas,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), TooMuch> {
        let transform = transform.pre_concat(group.transform());
        if !group.should_isolate() {
            return self.nodes(group, canvas, largest, transform);
        }
        let Some((layer, largest, transform)) = layer(group, largest, transform) else {
            // The renderer leaves it out, too.
            return Ok(());
        };
        let pixels = layer.pixels();
        self.step(pixels.saturating_mul(LAYER))?;
        self.held(pixels.saturating_mul(PIXEL), |meter| {
            meter.nodes(group, layer, largest, transform)?;
            for filter in group.filters() {
                let parts = filter.primitives().len() as u64;
                let kept = pixels.saturating_mul((parts + BESIDE) * PIXEL);
                meter.held(kept, |_| Ok(()))?;
                meter.step(pixels.saturating_mul((parts + 1) * FILTER))?;
            }
            if let Some(clip) = group.clip_path() {
                meter.clip(clip, layer, largest, transform)?;
            }
            match group.mask() {
                Some(mask) => meter.mask(mask, layer, largest, transform),
                None => Ok(()),
            }
        })
    }

    /// A picture of the clip path and a mask made of it. What within it is clipped itself has a picture of its own, which groups in `nodes` have as well.
    fn clip(
        &mut self,
        clip: &ClipPath,
        canvas: Canvas,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), TooMuch> {
        let pixels = canvas.pixels();
        self.step(pixels.saturating_mul(LAYER))?;
        self.held(pixels.saturating_mul(PIXEL + 1), |meter| {
            let within = transform.pre_concat(clip.transform());
            meter.nodes(clip.root(), canvas, largest, within)?;
            match clip.clip_path() {
                Some(next) => meter.clip(next, canvas, largest, transform),
                None => Ok(()),
            }
        })
    }

    /// A picture of the mask, a mask of its region, and a mask made of both.
    fn mask(
        &mut self,
        mask: &Mask,
        canvas: Canvas,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), TooMuch> {
        let pixels = canvas.pixels();
        self.step(pixels.saturating_mul(LAYER))?;
        self.held(pixels.saturating_mul(PIXEL + 2), |meter| {
            meter.nodes(mask.root(), canvas, largest, transform)?;
            match mask.mask() {
                Some(next) => meter.mask(next, canvas, largest, transform),
                None => Ok(()),
            }
        })
    }

    fn path(
        &mut self,
        path: &Path,
        canvas: Canvas,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), TooMuch> {
        if !path.is_visible() {
            return Ok(());
        }
        let outline = PathOutline::of(path, canvas, transform);
        let area = |area: Rect| {
            let area = area.transform(transform);
            area.map_or(canvas.pixels(), |area| canvas.covered(area))
        };
        if let Some(fill) = path.fill() {
            let colour = self.paint(fill.paint(), largest, transform)?;
            self.step(area(path.bounding_box()).saturating_mul(colour))?;
            self.step(outline.steps)?;
            self.held(outline.bytes, |_| Ok(()))?;
        }
        if let Some(stroke) = path.stroke() {
            let colour = self.paint(stroke.paint(), largest, transform)?;
            self.step(area(path.stroke_bounding_box()).saturating_mul(colour))?;
            let (sx, sy) = transform.get_scale();
            let width = f64::from(stroke.width().get() * sx.max(sy));
            let across = width.min(f64::from(canvas.height)) as u64 * STROKE * EDGE;
            let corners = outline.segments.saturating_mul(across);
            self.step(outline.steps.saturating_mul(STROKE).saturating_add(corners))?;
            let mut bytes = outline.bytes.saturating_mul(STROKE);
            if let Some(dashes) = stroke.dasharray() {
                let period: f64 = dashes.iter().copied().map(f64::from).sum();
                let count = outline.length / period * dashes.len() as f64;
                self.step((count as u64).saturating_mul(DASH + across))?;
                bytes = bytes.saturating_add((count as u64).saturating_mul(SEGMENT));
            }
            self.held(bytes, |_| Ok(()))?;
        }
        Ok(())
    }

    /// Steps a pixel. A pattern's tile is drawn first.
    fn paint(
        &mut self,
        paint: &Paint,
        largest: IntRect,
        transform: Transform,
    ) -> Result<u64, TooMuch> {
        match paint {
            Paint::Color(_) => Ok(1),
            Paint::LinearGradient(gradient) => Ok(4 + gradient.stops().len() as u64),
            Paint::RadialGradient(gradient) => Ok(8 + gradient.stops().len() as u64),
            Paint::Pattern(pattern) => {
                self.tile(pattern, largest, transform)?;
                Ok(32)
            }
        }
    }

    fn tile(
        &mut self,
        pattern: &Pattern,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), TooMuch> {
        let (sx, sy) = transform.pre_concat(pattern.transform()).get_scale();
        let side = |length: f32| length.round() as u32;
        let tile = Canvas {
            width: side(pattern.rect().width() * sx),
            height: side(pattern.rect().height() * sy),
        };
        let pixels = tile.pixels();
        self.step(pixels)?;
        self.held(pixels.saturating_mul(PIXEL), |meter| {
            meter.nodes(pattern.root(), tile, largest, Transform::from_scale(sx, sy))
        })
    }
}

/// The size of a group's layer, how large those within it may be, and where what is in it is drawn: as resvg works it out (`render_group` and `render_layer`).
fn layer(
    group: &Group,
    largest: IntRect,
    transform: Transform,
) -> Option<(Canvas, IntRect, Transform)> {
    let turned = if group.filters().is_empty() {
        Transform::identity()
    } else {
        let sx = transform.sx.hypot(transform.ky);
        let sy = transform.kx.hypot(transform.sy);
        Transform::from_row(
            transform.sx / sx,
            transform.ky / sx,
            transform.kx / sy,
            transform.sy / sy,
            0.0,
            0.0,
        )
    };
    let back = turned.invert()?;
    let largest = largest.to_rect().transform(back)?.round_out()?;
    let transform = back.pre_concat(transform);
    let area: NonZeroRect = group.layer_bounding_box().transform(transform)?;
    // Two pixels more on each side, for soft edges.
    let left = (area.left().floor() - 2.0).max(largest.left() as f32);
    let top = (area.top().floor() - 2.0).max(largest.top() as f32);
    let right = (area.right().ceil() + 2.0).min(largest.right() as f32);
    let bottom = (area.bottom().ceil() + 2.0).min(largest.bottom() as f32);
    let canvas = Canvas {
        width: (right - left).max(1.0) as u32,
        height: (bottom - top).max(1.0) as u32,
    };
    let moved = Transform::from_translate(-left, -top);
    Some((canvas, largest, moved.pre_concat(transform)))
}

/// What following the edges of a path takes.
struct PathOutline {
    steps: u64,
    bytes: u64,
    segments: u64,
    /// In the drawing's own units, at most.
    length: f64,
}

impl PathOutline {
    fn of(path: &Path, canvas: Canvas, transform: Transform) -> Self {
        let (mut segments, mut rows, mut length) = (0_u64, 0_u64, 0_f64);
        let high = f64::from(canvas.height);
        let (mut begin, mut at) = (Point::zero(), Point::zero());
        let mut line = |from: Point, to: Point| {
            let (dx, dy) = (f64::from(to.x - from.x), f64::from(to.y - from.y));
            length += dx.hypot(dy);
            let down = f64::from(transform.ky) * dx + f64::from(transform.sy) * dy;
            rows += down.abs().min(high) as u64 + 1;
        };
        for segment in path.data().segments() {
            segments += 1;
            // A curve is no longer than the lines that span it.
            match segment {
                PathSegment::MoveTo(to) => (begin, at) = (to, to),
                PathSegment::LineTo(to) => {
                    line(at, to);
                    at = to;
                }
                PathSegment::QuadTo(one, to) => {
                    line(at, one);
                    line(one, to);
                    at = to;
                }
                PathSegment::CubicTo(one, two, to) => {
                    line(at, one);
                    line(one, two);
                    line(two, to);
                    at = to;
                }
                PathSegment::Close => {
                    line(at, begin);
                    at = begin;
                }
            }
        }
        Self {
            steps: rows
                .saturating_mul(EDGE)
                .saturating_add(segments.saturating_mul(SEGMENT)),
            bytes: segments.saturating_mul(SEGMENT),
            segments,
            length,
        }
    }
}
