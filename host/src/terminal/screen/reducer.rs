use super::picture::Picture;

/// Reduces a picture that arrives in pieces, from the top: each pixel is the mean
/// of a square.
pub(super) struct Reducer {
    factor: usize,
    /// The sums of red, green and blue for each pixel of the next line.
    sums: Vec<[usize; 3]>,
    /// How many lines were added to the sums.
    added: usize,
    next_line: usize,
    pub(super) picture: Picture,
}

impl Reducer {
    /// Takes the size of the whole picture before it is reduced.
    pub(super) fn new(width: usize, height: usize, factor: usize) -> Self {
        let picture = Picture::filled(width / factor, height / factor);
        Self {
            factor,
            sums: vec![[0; 3]; picture.width],
            added: 0,
            next_line: 0,
            picture,
        }
    }

    pub(super) fn push(&mut self, piece: &Picture) {
        for line in piece.rgba.chunks_exact(piece.width * 4) {
            let squares = line.chunks_exact(self.factor * 4);
            for (sum, square) in self.sums.iter_mut().zip(squares) {
                for pixel in square.as_chunks::<4>().0 {
                    for (sum, part) in sum.iter_mut().zip(pixel) {
                        *sum += usize::from(*part);
                    }
                }
            }
            self.added += 1;
            if self.added == self.factor {
                self.finish_line();
            }
        }
    }

    fn finish_line(&mut self) {
        let pixels_per_square = self.factor * self.factor;
        let mut lines = self.picture.rgba.chunks_exact_mut(self.picture.width * 4);
        let line = lines.nth(self.next_line).unwrap_or_default();
        for (pixel, sum) in line.as_chunks_mut::<4>().0.iter_mut().zip(&mut self.sums) {
            for (part, sum) in pixel.iter_mut().zip(std::mem::take(sum)) {
                *part = u8::try_from(sum / pixels_per_square).unwrap_or(u8::MAX);
            }
        }
        self.added = 0;
        self.next_line += 1;
    }
}
