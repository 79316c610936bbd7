//! A guest played from a list, for simulation.
