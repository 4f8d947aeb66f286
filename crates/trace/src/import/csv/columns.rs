//! Columns and their meaning: `t=5us,off=3B,len=4B,op=2`, and the columns of known traces.

use crate::event::Layer;

/// Wrong words for columns, with what to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--map {part}: {why}")]
pub struct MapError {
    part: String,
    why: &'static str,
}

/// The columns of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// By column, 1 and up.
    pub(crate) fields: Vec<(usize, Meaning)>,
    pub(crate) separator: Separator,
    pub(crate) layer: Layer,
    /// Lines at the beginning that are no data.
    pub(crate) skipped: u64,
    /// Lines without operation are other commands, not mistakes.
    pub(crate) blank_op: BlankOp,
}

/// Between columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    Byte(u8),
    /// One or more blanks.
    Blanks,
}

/// A line with nothing in its column of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlankOp {
    IsMalformed,
    IsPassedOver,
}

/// The meaning of a column; times in nanoseconds and places in bytes per unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Start(u64),
    Duration(u64),
    Op,
    Offset(u64),
    Length(u64),
    /// A part of the volume's name.
    Volume,
    Stream,
}

impl Columns {
    /// Reads what `--map` says.
    ///
    /// # Errors
    /// Names the part that is wrong and what to write in its place.
    pub fn parse(text: &str) -> Result<Self, MapError> {
        let separator = Separator::Byte(b',');
        let layer = Layer::Block;
        let blank_op = BlankOp::IsMalformed;
        let mut columns = Self { fields: vec![], separator, layer, skipped: 0, blank_op };
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let wrong = |why| MapError { part: part.to_owned(), why };
            let (name, value) = part.trim().split_once('=').ok_or_else(|| wrong("write name=…"))?;
            columns.set(name, value).map_err(wrong)?;
        }
        columns.fields.sort_by_key(|(column, _)| *column);
        let has = |wanted: fn(&Meaning) -> bool| {
            columns.fields.iter().filter(|(_, meaning)| wanted(meaning)).count()
        };
        let whole = |why| MapError { part: text.to_owned(), why };
        if has(|meaning| matches!(meaning, Meaning::Offset(_))) != 1 {
            return Err(whole("name one column of offsets, such as off=3B"));
        }
        if has(|meaning| matches!(meaning, Meaning::Length(_))) != 1 {
            return Err(whole("name one column of lengths, such as len=4B"));
        }
        let is_single = |wanted: fn(&Meaning) -> bool| has(wanted) <= 1;
        if !is_single(|meaning| matches!(meaning, Meaning::Start(_)))
            || !is_single(|meaning| matches!(meaning, Meaning::Duration(_)))
            || !is_single(|meaning| matches!(meaning, Meaning::Op))
            || !is_single(|meaning| matches!(meaning, Meaning::Stream))
        {
            return Err(whole(
                "name one column for each meaning; only vol= takes several, vol=1+2",
            ));
        }
        Ok(columns)
    }

    pub(crate) fn has(&self, wanted: fn(&Meaning) -> bool) -> bool {
        self.fields.iter().any(|(_, meaning)| wanted(meaning))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        let meaning = match name {
            "t" => Meaning::Start(time_unit(unit(value))?),
            "dur" => Meaning::Duration(time_unit(unit(value))?),
            "off" => Meaning::Offset(byte_unit(unit(value))?),
            "len" => Meaning::Length(byte_unit(unit(value))?),
            "op" => Meaning::Op,
            "stream" => Meaning::Stream,
            "vol" => {
                for part in value.split('+') {
                    self.fields.push((column(part)?, Meaning::Volume));
                }
                return Ok(());
            }
            "sep" => {
                self.separator = separator(value)?;
                return Ok(());
            }
            "skip" => {
                self.skipped = value.parse().map_err(|_| "write a number of lines, skip=1")?;
                return Ok(());
            }
            "layer" => {
                self.layer = layer(value)?;
                return Ok(());
            }
            _ => return Err("known are t, dur, op, off, len, vol, stream, sep, skip, layer"),
        };
        let has_unit = !matches!(meaning, Meaning::Op | Meaning::Stream);
        let number = if has_unit { &value[..value.len() - unit(value).len()] } else { value };
        self.fields.push((column(number)?, meaning));
        Ok(())
    }
}

/// The letters after the digits.
fn unit(value: &str) -> &str {
    value.trim_start_matches(|c: char| c.is_ascii_digit())
}

fn column(text: &str) -> Result<usize, &'static str> {
    match text.parse() {
        Ok(column) if (1..=1000).contains(&column) => Ok(column),
        _ => Err("write the column's number, 1 for the first, and its unit: t=5us, off=3B"),
    }
}

fn time_unit(text: &str) -> Result<u64, &'static str> {
    match text {
        "ns" => Ok(1),
        "ft" => Ok(100),
        "us" => Ok(1_000),
        "ms" => Ok(1_000_000),
        "s" => Ok(1_000_000_000),
        _ => Err("units of time are ns, ft (100 ns), us, ms, s: t=5us"),
    }
}

fn byte_unit(text: &str) -> Result<u64, &'static str> {
    match text {
        "B" => Ok(1),
        "sec" => Ok(512),
        "K" => Ok(1 << 10),
        "P" => Ok(4 << 10),
        "M" => Ok(1 << 20),
        _ => Err("units of places are B, sec (512 B), K (1024 B), P (4096 B), M: off=3B"),
    }
}

fn separator(text: &str) -> Result<Separator, &'static str> {
    match text {
        "tab" => Ok(Separator::Byte(b'\t')),
        "blank" => Ok(Separator::Blanks),
        "comma" => Ok(Separator::Byte(b',')),
        _ => match text.as_bytes() {
            [byte] if byte.is_ascii_punctuation() => Ok(Separator::Byte(*byte)),
            _ => Err("write comma, tab, blank, or one mark, such as sep=;"),
        },
    }
}

fn layer(text: &str) -> Result<Layer, &'static str> {
    match text {
        "block" => Ok(Layer::Block),
        "file" => Ok(Layer::File),
        "syscall" => Ok(Layer::Syscall),
        _ => Err("layers are block, file, syscall"),
    }
}

/// Traces whose columns are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// MSR Cambridge (FAST 2008): 100-ns clock, response in 100 ns.
    Msr,
    /// SYSTOR 2017, enterprise virtual desktops: response first, operation may be blank.
    Systor,
    /// Alibaba block traces 2020: device first, microseconds.
    Alibaba,
    /// Tencent CBS 2018: one-second clock, sectors.
    Tencent,
    /// FIU: blanks between columns, nanoseconds, sectors.
    Fiu,
    /// SPC, the `UMass` repository: application storage units, sectors, seconds.
    Spc,
}

impl Preset {
    /// Its columns.
    #[must_use]
    pub fn columns(self) -> Columns {
        let text = match self {
            Self::Msr => "t=1ft,vol=2+3,op=4,off=5B,len=6B,dur=7ft",
            Self::Systor => "t=1s,dur=2s,op=3,vol=4,off=5B,len=6B",
            Self::Alibaba => "vol=1,op=2,off=3B,len=4B,t=5us",
            Self::Tencent => "t=1s,off=2sec,len=3sec,op=4,vol=5",
            Self::Fiu => "t=1ns,stream=2,off=4sec,len=5sec,op=6,vol=7+8,sep=blank",
            Self::Spc => "vol=1,off=2sec,len=3B,op=4,t=5s",
        };
        let columns = Columns::parse(text).expect("presets are of the form that they document");
        let is_systor = self == Self::Systor;
        let blank_op = if is_systor { BlankOp::IsPassedOver } else { BlankOp::IsMalformed };
        Columns { blank_op, ..columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_names_columns_and_units() {
        let columns = Columns::parse("t=5us,off=3B,len=4sec,op=2").unwrap();
        let expected = [
            (2, Meaning::Op),
            (3, Meaning::Offset(1)),
            (4, Meaning::Length(512)),
            (5, Meaning::Start(1000)),
        ];
        assert_eq!(columns.fields, expected);
        let columns = Columns::parse("off=1B,len=2B,vol=4+3,sep=tab,skip=2,layer=file").unwrap();
        assert_eq!(columns.separator, Separator::Byte(b'\t'));
        assert_eq!((columns.skipped, columns.layer), (2, Layer::File));
        assert_eq!(columns.fields[2..], [(3, Meaning::Volume), (4, Meaning::Volume)]);
    }

    #[test]
    fn a_wrong_map_says_what_to_write() {
        let check = |text: &str, part: &str| {
            let message = Columns::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        };
        check("t=5us", "off=3B");
        check("off=3B", "len=4B");
        check("off=3,len=4B", "units of places");
        check("off=0B,len=4B", "column's number");
        check("off=3B,len=4B,t=5", "units of time");
        check("off=3B,len=4B,where=5", "known are");
        check("off=3B,len=4B,op", "name=");
        check("off=3B,off=4B,len=4B", "one column of offsets");
        check("off=3B,len=4B,op=1,op=2", "one column for each");
        check("off=3B,len=4B,sep=xx", "comma");
        check("off=Bé,len=4B", "units of places");
    }

    #[test]
    fn every_preset_has_columns() {
        use Preset::{Alibaba, Fiu, Msr, Spc, Systor, Tencent};
        for preset in [Msr, Systor, Alibaba, Tencent, Fiu, Spc] {
            assert!(preset.columns().fields.len() >= 5);
        }
    }
}
