"""The tables of the ledger: everything that must survive the end of a kernel, on one page.

Paths are bytes, because names of files need not be UTF-8. Times are seconds since the epoch.
"""

VERSION = 1
"""Number of the layout; SQLite stores it as ``user_version``."""

TABLES = """
CREATE TABLE IF NOT EXISTS identity(name TEXT NOT NULL);

-- Checkpoints of a workspace (oh_jupyter/checkpoints).
CREATE TABLE IF NOT EXISTS checkpoints(
    -- A moment of a workspace to which one can return.
    workspace BLOB NOT NULL, id INTEGER NOT NULL, time REAL NOT NULL, kind TEXT NOT NULL,
    label TEXT NOT NULL, who TEXT NOT NULL, tree TEXT NOT NULL, details TEXT NOT NULL,
    last_write INTEGER NOT NULL, last_step INTEGER NOT NULL, extra TEXT NOT NULL,
    is_open INTEGER NOT NULL, owner TEXT NOT NULL,
    PRIMARY KEY(workspace, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS snapshot_details(
    -- What git's trees of some checkpoints do not store, as JSON.
    workspace BLOB NOT NULL, digest TEXT NOT NULL, contents TEXT NOT NULL,
    PRIMARY KEY(workspace, digest));
CREATE TABLE IF NOT EXISTS steps(
    -- A piece of an agent's work that may change files.
    id INTEGER PRIMARY KEY AUTOINCREMENT, workspace BLOB NOT NULL, turn INTEGER NOT NULL,
    owner TEXT NOT NULL, label TEXT NOT NULL, began REAL NOT NULL, ended REAL);
CREATE INDEX IF NOT EXISTS steps_of_turn ON steps(workspace, turn);
CREATE TABLE IF NOT EXISTS writes(
    -- A change of a path in a workspace, or one that a rewind plans.
    id INTEGER PRIMARY KEY AUTOINCREMENT, workspace BLOB NOT NULL, time REAL NOT NULL,
    path BLOB NOT NULL, step INTEGER NOT NULL, turn INTEGER NOT NULL, author TEXT NOT NULL,
    old TEXT, new TEXT, reason TEXT NOT NULL, is_known INTEGER NOT NULL, recorder TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS writes_of_turn ON writes(workspace, turn);
CREATE TABLE IF NOT EXISTS jobs(
    -- A process that lives on after the agent's step that started it.
    workspace BLOB NOT NULL, owner TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL,
    step INTEGER NOT NULL, turn INTEGER NOT NULL, label TEXT NOT NULL,
    PRIMARY KEY(workspace, owner, pid, step)) WITHOUT ROWID;

-- Reports of a store's changes to a webhook (oh_jupyter/storage/webhook).
CREATE TABLE IF NOT EXISTS deliveries(
    -- A change that the receiver has not accepted yet.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT, method TEXT NOT NULL, path TEXT NOT NULL, key TEXT NOT NULL,
    size INTEGER NOT NULL, recorded REAL NOT NULL, id TEXT, batch TEXT,
    tries INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
    rounds INTEGER NOT NULL DEFAULT 0, due REAL NOT NULL DEFAULT 0, reason TEXT,
    contents BLOB, file TEXT);
CREATE TABLE IF NOT EXISTS dead_letters(
    -- A change that was given up.
    number INTEGER PRIMARY KEY, id TEXT NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL,
    key TEXT NOT NULL, size INTEGER NOT NULL, recorded REAL NOT NULL,
    attempts INTEGER NOT NULL, reason TEXT NOT NULL, superseded INTEGER NOT NULL DEFAULT 0,
    contents BLOB, file TEXT);

-- The last version of a file that its store has not accepted yet, because it is unreachable
-- (oh_jupyter/storage); `sender` is the process that sends it, `sent` are digests of earlier
-- versions that the store may have.
CREATE TABLE IF NOT EXISTS pending_files(
    number INTEGER PRIMARY KEY AUTOINCREMENT, store TEXT NOT NULL, key TEXT NOT NULL,
    time REAL NOT NULL, size INTEGER NOT NULL, digest TEXT NOT NULL, sent TEXT NOT NULL,
    sender TEXT, tries INTEGER NOT NULL DEFAULT 0, contents BLOB, file TEXT, UNIQUE(store, key));
CREATE INDEX IF NOT EXISTS reserved_files ON pending_files(store, sender)
    WHERE sender IS NOT NULL;

-- A file that an editor changed. Its base is the content after the change with that number, from
-- which the others are rebuilt.
CREATE TABLE IF NOT EXISTS edited_files(
    id INTEGER PRIMARY KEY, workspace BLOB NOT NULL, path BLOB NOT NULL,
    base INTEGER, digest TEXT, is_pruned INTEGER NOT NULL DEFAULT 0, UNIQUE(workspace, path));
CREATE INDEX IF NOT EXISTS bases ON edited_files(digest);

-- A change of a file from one content to the next: an edit, one from outside, an undo or a redo.
-- One that rewrites the file has no delta, but both contents.
CREATE TABLE IF NOT EXISTS edits(
    id INTEGER PRIMARY KEY, number INTEGER NOT NULL,
    file INTEGER NOT NULL REFERENCES edited_files(id) ON DELETE CASCADE,
    kind TEXT NOT NULL, state TEXT NOT NULL, command TEXT NOT NULL, time REAL NOT NULL,
    before TEXT, after TEXT, target INTEGER, together TEXT NOT NULL, files TEXT NOT NULL,
    attributes TEXT, size INTEGER NOT NULL, tag TEXT, mode INTEGER,
    is_whole INTEGER NOT NULL, delta BLOB, delta_file TEXT, UNIQUE(file, number));
CREATE INDEX IF NOT EXISTS whole_before ON edits(before) WHERE is_whole;
CREATE INDEX IF NOT EXISTS whole_after ON edits(after) WHERE is_whole;
CREATE INDEX IF NOT EXISTS edits_by_state ON edits(file, kind, state, number);
CREATE INDEX IF NOT EXISTS planned_edits ON edits(state) WHERE state IN ('planned', 'reverting');

-- A whole content of an edited file; `file` names that of a large one.
CREATE TABLE IF NOT EXISTS edited_contents(
    workspace BLOB NOT NULL, digest TEXT NOT NULL, data BLOB, file TEXT, size INTEGER NOT NULL,
    PRIMARY KEY(workspace, digest));

-- A kind of Actions that a reason no longer holds up in a workspace; parameters are a JSON list
CREATE TABLE IF NOT EXISTS approvals(
    workspace BLOB NOT NULL, kind TEXT NOT NULL, code TEXT NOT NULL, parameters TEXT NOT NULL,
    PRIMARY KEY (workspace, kind, code, parameters)
) WITHOUT ROWID;

-- The last conversation with an agent in a workspace, by the agent's own id
CREATE TABLE IF NOT EXISTS agent_sessions(
    workspace BLOB NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
    PRIMARY KEY (workspace, agent)
) WITHOUT ROWID;

-- The registry of agents as it was fetched, a JSON object or null; there is one row at most
CREATE TABLE IF NOT EXISTS agent_registry(
    url TEXT NOT NULL, tried REAL NOT NULL, registry TEXT NOT NULL
);

-- A change of a file or directory by a person in Jupyter or in a kernel's editor
CREATE TABLE IF NOT EXISTS persons_writes(
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, path BLOB NOT NULL, time REAL NOT NULL,
    target BLOB NOT NULL, contents TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS persons_writes_by_time ON persons_writes(time);

-- Contents of a folder's settings file that a person trusts; the digest is of path and contents
CREATE TABLE IF NOT EXISTS trusted_settings(digest TEXT PRIMARY KEY, path BLOB NOT NULL);

-- A token that allows an agent some things; scopes are separated by spaces
CREATE TABLE IF NOT EXISTS tokens(
    number INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, id TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL, notebook BLOB NOT NULL, expires REAL, label TEXT NOT NULL
);
"""

CONTENTS = {
    "checkpoints": "checkpoints of workspaces",
    "snapshot_details": "details of checkpoints",
    "steps": "steps of agents",
    "writes": "changes of files in turns",
    "jobs": "running processes of agents",
    "deliveries": "undelivered webhooks",
    "dead_letters": "webhooks that were given up",
    "pending_files": "files that wait for an unreachable store",
    "edited_files": "edited files",
    "edits": "changes of edited files",
    "edited_contents": "contents of edited files",
    "approvals": "approvals that hold for a workspace",
    "persons_writes": "saves, deletions and moves of files by people",
    "trusted_settings": "trusted settings of folders",
    "agent_sessions": "last conversations with agents",
    "agent_registry": "fetched registries of agents",
    "tokens": "scoped tokens",
}
"""A row of each table in plain words, for people."""
