-- Reason: the first schema. Tenants, what they register, their runs, and what belongs to a run.
--
-- A tenant is a number here, since its name would make every narrow row twice as wide.
-- Times are milliseconds since 1970-01-01T00:00:00Z. Blobs are described in src/codec.rs.
-- No foreign keys: each is checked in the transaction that needs it, where a miss has an answer
-- of its own, and the hot path writes two rows whose parents it has just read.

CREATE TABLE tenants (
    tenant INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE
) STRICT;

-- Bytes once per tenant and digest.
CREATE TABLE components (
    component INTEGER PRIMARY KEY,
    tenant    INTEGER NOT NULL,
    digest    BLOB NOT NULL,
    bytes     BLOB NOT NULL,
    UNIQUE (tenant, digest)
) STRICT;

-- (workflow, label) → component, never changed.
CREATE TABLE versions (
    version       INTEGER PRIMARY KEY,
    tenant        INTEGER NOT NULL,
    workflow      TEXT NOT NULL,
    label         TEXT NOT NULL,
    digest        BLOB NOT NULL,
    manifest      TEXT NOT NULL,
    environment   BLOB NOT NULL,
    registered_at INTEGER NOT NULL,
    UNIQUE (tenant, workflow, label)
) STRICT;

-- What new runs get when they name no label.
CREATE TABLE default_versions (
    tenant   INTEGER NOT NULL,
    workflow TEXT NOT NULL,
    version  INTEGER NOT NULL,
    PRIMARY KEY (tenant, workflow)
) STRICT, WITHOUT ROWID;

-- What of a run never changes, save at continue-as-new. Wide, and written once; in the order of
-- its key, which is the order of creation, so that new rows share pages.
CREATE TABLE runs (
    tenant     INTEGER NOT NULL,
    run        BLOB NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER NOT NULL, -- of the newest journal
    input      BLOB NOT NULL,    -- of the newest journal
    PRIMARY KEY (tenant, run)
) STRICT, WITHOUT ROWID;

-- Which run a start with an idempotency key made, and from what.
CREATE TABLE start_keys (
    tenant       INTEGER NOT NULL,
    key          TEXT NOT NULL,
    run          BLOB NOT NULL,
    workflow     TEXT NOT NULL,
    input_digest BLOB NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

-- What of a run changes. Narrow, since every append writes one: the fewer pages a commit of many
-- runs touches, the more runs share it. Its meaning is in src/head.rs.
CREATE TABLE heads (
    run                     BLOB NOT NULL PRIMARY KEY,
    tenant                  INTEGER NOT NULL,
    status                  TEXT NOT NULL,
    epoch                   INTEGER NOT NULL,
    host                    BLOB,
    generation              INTEGER NOT NULL,
    next                    INTEGER NOT NULL,
    tail                    INTEGER,          -- the newest row of the newest journal
    journal_bytes           INTEGER NOT NULL,
    due                     INTEGER,
    ready_since             INTEGER,
    paused                  INTEGER NOT NULL,
    cancel_requested        INTEGER NOT NULL,
    host_lost               INTEGER NOT NULL,
    claims_without_progress INTEGER NOT NULL,
    waits                   BLOB,
    sleeps                  INTEGER NOT NULL,
    inbox_last              INTEGER NOT NULL,
    mailbox_events          INTEGER NOT NULL,
    wake                    INTEGER,
    stuck_reason            TEXT,
    revision                INTEGER NOT NULL,
    updated_at              INTEGER NOT NULL,
    -- Derived from the columns above, for the indexes below.
    claimable               INTEGER NOT NULL,
    phase                   INTEGER NOT NULL  -- 0 open, 1 ended without having completed, 2 completed
) STRICT, WITHOUT ROWID;

-- A run in neither state costs these two nothing, so appends of running runs leave them alone.
CREATE INDEX heads_ready ON heads (ready_since) WHERE claimable = 1 AND ready_since IS NOT NULL;
CREATE INDEX heads_due ON heads (due) WHERE claimable = 1 AND due IS NOT NULL;
-- Finds open runs, and those that failed or were stopped, among any number of completed ones.
CREATE INDEX heads_notable ON heads (phase, tenant) WHERE phase < 2;

-- The entries of one append in one row, rows in the order of their commit: a commit of many runs
-- fills whole pages. Each row points back to the one before it in the same journal, and the head
-- to the newest. Every 64th row of a journal takes the place of the 63 before it as well, and
-- points past them; see src/sqlite/folds.rs. Measured against other layouts in examples/layout.rs.
CREATE TABLE journal (
    id         INTEGER PRIMARY KEY,
    previous   INTEGER,
    folded     INTEGER,          -- the newest of the rows that this one takes the place of
    first      INTEGER NOT NULL, -- the sequence of its first entry
    tenant     INTEGER NOT NULL,
    run        BLOB NOT NULL,
    generation INTEGER NOT NULL,
    entries    BLOB NOT NULL
) STRICT;

-- Journals that ended with continue-as-new.
CREATE TABLE generations (
    run        BLOB NOT NULL,
    generation INTEGER NOT NULL,
    tenant     INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,
    entries    INTEGER NOT NULL,
    tail       INTEGER NOT NULL,
    input      BLOB NOT NULL,
    PRIMARY KEY (run, generation)
) STRICT, WITHOUT ROWID;

-- What no journal entry has taken yet. A row goes when an entry takes it.
CREATE TABLE inbox (
    run     BLOB NOT NULL,
    id      INTEGER NOT NULL,
    tenant  INTEGER NOT NULL,
    kind    TEXT NOT NULL, -- event, cancel, wake
    at      INTEGER NOT NULL,
    text    TEXT,          -- an event's name, a cancel's reason
    payload BLOB,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

-- Every event that was accepted, and what became of it. Taken, if the inbox has it no more.
CREATE TABLE events (
    run          BLOB NOT NULL,
    id           INTEGER NOT NULL,
    tenant       INTEGER NOT NULL,
    name         TEXT NOT NULL,
    sent_at      INTEGER NOT NULL,
    delivery_key TEXT,
    reply        BLOB,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX events_delivery_key ON events (run, delivery_key) WHERE delivery_key IS NOT NULL;

CREATE TABLE published (
    run    BLOB NOT NULL,
    key    TEXT NOT NULL,
    tenant INTEGER NOT NULL,
    value  BLOB NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE logs (
    run     BLOB NOT NULL,
    number  INTEGER NOT NULL,
    tenant  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    level   TEXT NOT NULL,
    message TEXT NOT NULL,
    fields  BLOB NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- Hosts that live, and until when they may be taken to. The one table that belongs to no tenant.
CREATE TABLE hosts (
    host        BLOB NOT NULL PRIMARY KEY,
    lease_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
