//! A table in memory, column by column.

/// What a column holds; `None` where it is not known.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// 64-bit signed integers.
    Integer(Vec<Option<i64>>),
    /// 64-bit floating-point numbers, all of them finite.
    Real(Vec<Option<f64>>),
    /// True or false.
    Truth(Vec<Option<bool>>),
    /// UTF-8.
    Text(Vec<Option<String>>),
}

impl Values {
    /// The type as the documentation names it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Integer(_) => "i64",
            Self::Real(_) => "f64",
            Self::Truth(_) => "bool",
            Self::Text(_) => "string",
        }
    }
}

/// A column; its name ends with the unit where it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// One value per row.
    pub values: Values,
}

/// Columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// How many rows each of them has.
    pub rows: usize,
}

/// Makes the columns of a table from what stands behind its rows.
pub(super) struct Builder<'a, T> {
    items: &'a [T],
    columns: Vec<Column>,
}

impl<'a, T> Builder<'a, T> {
    pub(super) fn new(items: &'a [T]) -> Self {
        Self { items, columns: Vec::new() }
    }

    pub(super) fn integer(&mut self, name: &str, get: impl Fn(&T) -> Option<u64>) {
        // Beyond 2^63 there is no size or count that means anything.
        let signed = |item| get(item).map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        self.push(name, Values::Integer(self.items.iter().map(signed).collect()));
    }

    pub(super) fn real(&mut self, name: &str, get: impl Fn(&T) -> Option<f64>) {
        let finite = |item| get(item).filter(|value| value.is_finite());
        self.push(name, Values::Real(self.items.iter().map(finite).collect()));
    }

    pub(super) fn truth(&mut self, name: &str, get: impl Fn(&T) -> Option<bool>) {
        self.push(name, Values::Truth(self.items.iter().map(get).collect()));
    }

    pub(super) fn text(&mut self, name: &str, get: impl Fn(&T) -> Option<String>) {
        self.push(name, Values::Text(self.items.iter().map(get).collect()));
    }

    fn push(&mut self, name: &str, values: Values) {
        self.columns.push(Column { name: name.to_owned(), values });
    }

    pub(super) fn finish(self) -> Table {
        Table { columns: self.columns, rows: self.items.len() }
    }
}
