//! Nothing: see main.rs.
