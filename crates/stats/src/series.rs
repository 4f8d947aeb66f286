//! The raw series: what was counted, piece by piece, in the order of time.

/// An amount that was counted over a length: bytes over seconds, for example.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Piece {
    /// What was counted.
    pub amount: f64,
    /// Over how much.
    pub length: f64,
}

impl Piece {
    /// Amount over length; 0 for a piece without length.
    pub fn rate(&self) -> f64 {
        if self.length > 0.0 { self.amount / self.length } else { 0.0 }
    }
}

/// Pieces joined to one.
pub fn total(pieces: &[Piece]) -> Piece {
    pieces.iter().fold(Piece::default(), |sum, piece| Piece {
        amount: sum.amount + piece.amount,
        length: sum.length + piece.length,
    })
}
