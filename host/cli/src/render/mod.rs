//! Text for people, made from the documents of the API. Pure: no terminal, clock or network here,
//! so that every drawing can be tested as text.

mod list;
mod live;
mod run;
mod sketch;
mod style;
mod table;
mod text;
mod time;
mod timeline;

pub(crate) use list::{offers, registered, runs, versions};
pub(crate) use live::{Live, line};
pub(crate) use run::{Shown, ended, run};
pub(crate) use style::{Paint, Style};
pub(crate) use text::{bytes, plain};
pub(crate) use time::span;

#[cfg(test)]
mod tests;
