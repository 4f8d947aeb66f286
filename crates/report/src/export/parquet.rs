//! Parquet: one row group, every column optional, no compression (the tables are small, and what
//! repeats is kept in dictionaries anyway). The same record gives the same bytes.

use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::Type;

use super::table::{Column, Table, Values};

/// A table that could not be written.
#[derive(Debug)]
pub struct ParquetError(::parquet::errors::ParquetError);

impl std::fmt::Display for ParquetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write Parquet: {}", self.0)
    }
}

impl std::error::Error for ParquetError {}

impl From<::parquet::errors::ParquetError> for ParquetError {
    fn from(error: ::parquet::errors::ParquetError) -> Self {
        Self(error)
    }
}

impl Table {
    /// The table as a Parquet file.
    ///
    /// # Errors
    /// Where the library refuses; no table of ours makes it.
    pub fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let fields = self.columns.iter().map(|column| Ok(Arc::new(field(column)?)));
        let fields = fields.collect::<Result<Vec<_>, ParquetError>>()?;
        let schema = Type::group_type_builder("ioscape").with_fields(fields).build()?;
        let made_by = concat!("ioscape ", env!("CARGO_PKG_VERSION")).to_owned();
        let properties = WriterProperties::builder().set_created_by(made_by).build();
        let mut file = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut file, Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for column in &self.columns {
            let mut to = group.next_column()?.expect("the schema has a field for each column");
            write(&mut to, &column.values)?;
            to.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(file)
    }
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.values {
        Values::Integer(_) => (Physical::INT64, None),
        Values::Real(_) => (Physical::DOUBLE, None),
        Values::Truth(_) => (Physical::BOOLEAN, None),
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let builder = Type::primitive_type_builder(&column.name, physical);
    Ok(builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()?)
}

fn write(to: &mut SerializedColumnWriter<'_>, values: &Values) -> Result<(), ParquetError> {
    match values {
        Values::Integer(all) => {
            let (known, levels) = split(all, |value| *value);
            to.typed::<Int64Type>().write_batch(&known, Some(&levels), None)?;
        }
        Values::Real(all) => {
            let (known, levels) = split(all, |value| *value);
            to.typed::<DoubleType>().write_batch(&known, Some(&levels), None)?;
        }
        Values::Truth(all) => {
            let (known, levels) = split(all, |value| *value);
            to.typed::<BoolType>().write_batch(&known, Some(&levels), None)?;
        }
        Values::Text(all) => {
            let (known, levels) = split(all, |text| ByteArray::from(text.as_str()));
            to.typed::<ByteArrayType>().write_batch(&known, Some(&levels), None)?;
        }
    }
    Ok(())
}

/// The values that are known, and for each row whether there is one: 1 or 0.
fn split<T, P>(all: &[Option<T>], plain: impl Fn(&T) -> P) -> (Vec<P>, Vec<i16>) {
    let known = all.iter().flatten().map(plain).collect();
    (known, all.iter().map(|value| i16::from(value.is_some())).collect())
}
