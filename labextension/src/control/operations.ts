// Written by scripts/operation_types from oh_jupyter/operations.

/** Operation that a frontend can ask of a runtime, with its arguments. */
export type OperationRequest =
  | IAgents
  | IBrowserMarks
  | ICellOutputs
  | IChange
  | IChanges
  | ICheckpoints
  | IConfirm
  | IConfirmations
  | IDecisions
  | IDeleteFromStore
  | IDeliveries
  | IDiscardDeliveries
  | IDownload
  | IDownloadFile
  | IDownloadFromStore
  | IDownloadPage
  | IEndResource
  | IEvent
  | IEvents
  | IExecuteAction
  | IFinish
  | IFollowTurn
  | IGiveUp
  | IHoldBrowser
  | IInterrupt
  | IInterruptAgent
  | IKeepText
  | IListFiles
  | IListStore
  | IMarkCheckpoint
  | INotebookFile
  | IPage
  | IPeek
  | IPromptAgent
  | IReceive
  | IRecordEdit
  | IRecordKeep
  | IRenameInStore
  | IResendDeliveries
  | IRewind
  | IRewindChange
  | IRunCell
  | IRunningCell
  | IRunsWhen
  | ISend
  | ISkills
  | IStatus
  | IStoreInfo
  | ITableRows
  | ITools
  | IToolsChanged
  | ITrustFolder
  | IUndoChange
  | IUntrustedSettings
  | IUpdateMcpServer
  | IUpload
  | IUploadToStore
  | IUseBrowser
  | IVariables
  | IVscode
  | IWatchBrowser
  | IWithdraw
  | IWorkspaceFiles;

/** Replies to operations, by their names. */
export interface IReplies {
  readonly agents: IConversation;
  readonly browser_marks: readonly IBrowserMark[];
  readonly cell_outputs: IOutputBatch;
  readonly change: IFileContents;
  readonly changes: IFileChanges;
  readonly checkpoints: ICheckpointList;
  readonly confirm: null;
  readonly confirmations: readonly IQuestion[];
  readonly decisions: IDecisionList;
  readonly delete_from_store: null;
  readonly deliveries: IDeliveryList;
  readonly discard_deliveries: number;
  readonly download: ITransfer;
  readonly download_file: ITransfer;
  readonly download_from_store: ITransfer;
  readonly download_page: ITransfer;
  readonly end_resource: null;
  readonly event: Readonly<Record<string, unknown>>;
  readonly events: IEventPage;
  readonly execute_action: Readonly<Record<string, unknown>>;
  readonly finish: null;
  readonly follow_turn: ITurnProgress;
  readonly give_up: null;
  readonly hold_browser: boolean;
  readonly interrupt: null;
  readonly interrupt_agent: null;
  readonly keep_text: string;
  readonly list_files: readonly string[];
  readonly list_store: IStoreListing;
  readonly mark_checkpoint: ICheckpoint;
  readonly notebook_file: string;
  readonly page: Readonly<Record<string, unknown>>;
  readonly peek: IProgress;
  readonly prompt_agent: ITurn | null;
  readonly receive: unknown;
  readonly record_edit: null;
  readonly record_keep: null;
  readonly rename_in_store: null;
  readonly resend_deliveries: number;
  readonly rewind: IRewindPlan;
  readonly rewind_change: IFileContents;
  readonly run_cell: ICellResult;
  readonly running_cell: ICellInProgress | null;
  readonly runs_when: string | null;
  readonly send: null;
  readonly skills: readonly ISkill[];
  readonly status: IRuntimeStatus;
  readonly store_info: IStoreEntry;
  readonly table_rows: ITablePage;
  readonly tools: IToolList;
  readonly tools_changed: number;
  readonly trust_folder: null;
  readonly undo_change: IUndoneChange;
  readonly untrusted_settings: IFolderSettings;
  readonly update_mcp_server: string;
  readonly upload: ITransfer;
  readonly upload_to_store: ITransfer;
  readonly use_browser: string;
  readonly variables: IVariableView;
  readonly vscode: IVSCodeAddress;
  readonly watch_browser: IBrowserView;
  readonly withdraw: null;
  readonly workspace_files: readonly string[];
}

/** An agent that a person can prompt. */
export interface IAgent {
  /** Its name. */
  readonly name: string;
  /** Whether it can be prompted, and what it does. */
  readonly state: 'busy' | 'ready' | 'installed' | 'missing' | 'forbidden';
  /** How it is installed. */
  readonly installation: string;
  /** Options of its session; none before it runs. */
  readonly options: readonly IAgentOption[];
  /** Why an administrator forbids it; "" if it is allowed. */
  readonly reason: string;
}

/** An option of an agent's session, such as its mode or model. */
export interface IAgentOption {
  /** The agent's id. */
  readonly id: string;
  /** Its name for people. */
  readonly name: string;
  /** Its category: mode, model, model_config, thought_level, or another one. */
  readonly category: string;
  /** The current value; `on` or `off` for a switch. */
  readonly current: string;
  /** Its values; none for a switch. */
  readonly choices: readonly IOptionChoice[];
  /** Whether it is on or off. */
  readonly is_switch: boolean;
  /** Whether it is set by the protocol's older request for modes. */
  readonly is_mode: boolean;
}

/** An element of a page on which agents can act. */
export interface IBrowserMark {
  /** Its id in the action language. */
  readonly bid: string;
  /** Its box in the viewport: x, y, width and height. */
  readonly bbox: readonly number[];
}

/** A tab of the browser. */
export interface IBrowserTab {
  /** Its title, or else its URL. */
  readonly title: string;
  /** Whether it is the one that is shown. */
  readonly active: boolean;
}

/** The page in the browser, and who uses it. */
export interface IBrowserView {
  /** Whether a person has taken it over. */
  readonly held: boolean;
  /** Why no browser can be used here; "" if one can. */
  readonly refused: string;
  /** Name of the browser's session; "" without one. */
  readonly session: string;
  /** Number of the picture; -1 if no browser runs. */
  readonly number: number;
  /** The picture, a JPEG in base64; "" without one. */
  readonly picture: string;
  /** Width of the viewport in the page's pixels. */
  readonly width: number;
  /** Height of the viewport in the page's pixels. */
  readonly height: number;
  /** Position of the viewport: x and y. */
  readonly scroll: readonly number[];
  /** URL of the page. */
  readonly url: string;
  /** The tabs. */
  readonly tabs: readonly IBrowserTab[];
}

/** A change of one cell of a notebook. */
export interface ICellChange {
  /** Type of the change; the source of a moved cell may differ, too. */
  readonly kind: 'created' | 'changed' | 'deleted' | 'moved';
  /** The cell's id; null in notebooks older than format 4.5. */
  readonly id: string | null;
  /** Current (or last) type: code, markdown or raw. */
  readonly cell_type: string;
  /** Previous position, counted from 0; null for a new cell. */
  readonly old_index: number | null;
  /** Current position, counted from 0; null for a deleted cell. */
  readonly new_index: number | null;
  /** Previous source; "" for a new cell. */
  readonly old_source: string;
  /** Current source; "" for a deleted cell. */
  readonly new_source: string;
  /** Previous outputs as text. */
  readonly old_outputs: string;
  /** Current outputs as text. */
  readonly new_outputs: string;
  /** Previous metadata as JSON; "" without metadata. */
  readonly old_metadata: string;
  /** Current metadata as JSON; "" without metadata. */
  readonly new_metadata: string;
}

/** The cell that the kernel executes, with its output so far. */
export interface ICellInProgress {
  /** The beginning of its first line. */
  readonly first_line: string;
  /** Number of its lines. */
  readonly lines: number;
  /** Time for which it has been running. */
  readonly seconds: number;
  /** Who runs it. */
  readonly by: 'agent' | 'person';
  /**
   * Whether it waits for an Action or an agent, and computes nothing; missing
   * if not.
   */
  readonly waits?: boolean;
  /** Its code. */
  readonly code: string;
  /** Id of the notebook's cell; "" if the frontend does not name it. */
  readonly cell_id: string;
  /** Its output so far as text; the middle of a long one is left out. */
  readonly output: string;
  /** File with more of a long output; "" for others. */
  readonly file: string;
}

/** The result of a cell that ran as an Action. */
export interface ICellResult {
  /** Its Observation in wire form. */
  readonly observation: Readonly<Record<string, unknown>>;
  /** File with the whole text of a long output; "" for others. */
  readonly file: string;
  /** All outputs in the notebook format. */
  readonly outputs: readonly Readonly<Record<string, unknown>>[];
  /** Its number; null if it did not run. */
  readonly execution_count: number | null;
  /** Outputs that the client which follows it lacks. */
  readonly rest: IUnseenOutputs;
}

/** A cell that the kernel executes. */
export interface ICellSummary {
  /** The beginning of its first line. */
  readonly first_line: string;
  /** Number of its lines. */
  readonly lines: number;
  /** Time for which it has been running. */
  readonly seconds: number;
  /** Who runs it. */
  readonly by: 'agent' | 'person';
  /**
   * Whether it waits for an Action or an agent, and computes nothing; missing
   * if not.
   */
  readonly waits?: boolean;
}

/** A moment to which a rewind can return. */
export interface ICheckpoint {
  /** Number within the workspace, counted from 1. */
  readonly id: number;
  /** When it was made, in seconds since the epoch. */
  readonly time: number;
  /** A turn of an agent, a mark of a person, or a rewind. */
  readonly kind: 'turn' | 'mark' | 'rewind';
  /** The prompt or first Action of a turn, or the label of a mark. */
  readonly label: string;
  /** Who acted in the turn, such as the name of an agent. */
  readonly who: string;
  /** Whether it is a turn or rewind that has ended. */
  readonly ended: boolean;
  /** Files that the turn changed. */
  readonly files: readonly string[];
  /** Number of cells that the turn ran. */
  readonly cells: number;
  /** Names of the variables that the turn changed. */
  readonly variables: readonly string[];
}

/** The checkpoints of a workspace. */
export interface ICheckpointList {
  /** All of them, oldest first. */
  readonly checkpoints: readonly ICheckpoint[];
  /** Why there are no new ones; "" if there are. */
  readonly problem: string;
}

/** A value that a person can choose. */
export interface IChoice {
  /** The value. */
  readonly value: string;
  /** Its title. */
  readonly title: string;
}

/** The box in which agents' commands run, if any. */
export interface ICommandBox {
  /**
   * The box of the whole kernel, a box of their own, none, none although it is
   * wanted, or nowhere because a box is required and missing.
   */
  readonly place: 'kernel' | 'box' | 'none' | 'missing' | 'refused';
  /** Network of the box; "" outside of one. */
  readonly network: string;
}

/** The agents of a kernel, and their turns. */
export interface IConversation {
  /** The agents. */
  readonly agents: readonly IAgent[];
  /** The agent used last; null for none. */
  readonly current: string | null;
  /** The last turns, oldest first. */
  readonly turns: readonly ITurn[];
}

/** A decision of the person on an agent's changes in a tab. */
export interface IDecision {
  /** A sentence. */
  readonly text: string;
  /** What an undo changed in the file; "" for changes that were kept. */
  readonly diff: string;
}

/** The decisions of a person. */
export interface IDecisionList {
  /** All of them, oldest first. */
  readonly decisions: readonly IDecision[];
}

/** An undelivered change. */
export interface IDelivery {
  /** The `webhook-id` of the request. */
  readonly id: string;
  /** `POST` or `DELETE`. */
  readonly method: string;
  /** Path of the file. */
  readonly path: string;
  /** Size of the contents in bytes. */
  readonly size: number;
  /** Whether it is still retried automatically. */
  readonly state: 'waiting' | 'dead';
  /** Number of failed attempts. */
  readonly attempts: number;
  /** Reason of the last failure; "" before the first attempt. */
  readonly reason: string;
  /** Time of the change in UTC, in ISO format. */
  readonly recorded: string;
  /** Time of the next attempt in UTC; null for now or never. */
  readonly due: string | null;
  /**
   * Whether a later change of the file was accepted or is waiting, so that
   * sending it again would revert the receiver to an older state.
   */
  readonly superseded: boolean;
}

/** The undelivered changes of a store. */
export interface IDeliveryList {
  /** Whether the store has a webhook. */
  readonly has_webhook: boolean;
  /** Number of undelivered changes. */
  readonly total: number;
  /** The last ones, oldest first. */
  readonly deliveries: readonly IDelivery[];
}

/** Events of a log. */
export interface IEventPage {
  /** Directory of relative paths. */
  readonly workspace_dir: string;
  /** The events in wire form. */
  readonly events: readonly Readonly<Record<string, unknown>>[];
}

/** A file that differs from its state at the start of the session. */
export interface IFileChange {
  /** Its absolute path. */
  readonly path: string;
  /** Type of the change. */
  readonly kind: 'created' | 'changed' | 'deleted' | 'moved';
  /** Previous absolute path; null if it was not moved. */
  readonly moved_from: string | null;
  /** Number of added lines. */
  readonly added: number;
  /** Number of removed lines. */
  readonly removed: number;
  /** Size of a binary file in bytes, whose lines are not counted; else null. */
  readonly binary_size: number | null;
  /**
   * What a person does that runs the change, such as "you run make"; null if
   * nothing.
   */
  readonly runs_when: string | null;
  /** Whether others changed it between the edits. */
  readonly by_others: boolean;
  /** Whether the change can be undone. */
  readonly undoable: boolean;
  /** Whether an undone change can be done again. */
  readonly redoable: boolean;
}

/** The changes of a session. */
export interface IFileChanges {
  /** Absolute path of the workspace. */
  readonly workspace: string;
  /** Why changes by commands are unknown; "" if they are known. */
  readonly problem: string;
  /** The changed files. */
  readonly files: readonly IFileChange[];
}

/** Both versions of a changed file. */
export interface IFileContents {
  /** The text before; null for a notebook, or where there is a reason. */
  readonly old: string | null;
  /** The text after. */
  readonly new: string | null;
  /** The changed cells of a notebook. */
  readonly cells: readonly ICellChange[];
  /** Language of these cells; "" if it is unknown. */
  readonly language: string;
  /** Why there are no contents; null if there are. */
  readonly reason: 'binary' | 'too_long' | 'forgotten' | null;
}

/** A setting of a folder's file. */
export interface IFolderSetting {
  /** Its name. */
  readonly name: string;
  /** Its value, as people see it. */
  readonly value: string;
}

/** The settings of a folder that need a person's trust. */
export interface IFolderSettings {
  /** Path of the settings file; "" without one. */
  readonly file: string;
  /** Identifies the contents of the file. */
  readonly digest: string;
  /** The settings; empty if none need trust. */
  readonly settings: readonly IFolderSetting[];
}

/** One value for which an agent asks. */
export interface IFormField {
  /** Its name in the agent's schema. */
  readonly name: string;
  /** Its title for people. */
  readonly title: string;
  /** Its type. */
  readonly type: 'string' | 'number' | 'integer' | 'boolean' | 'array';
  /** A longer description. */
  readonly description: string;
  /** The values to choose from; empty if any value is possible. */
  readonly choices: readonly IChoice[];
  /** Whether the agent needs it. */
  readonly is_required: boolean;
  /** The value if the person gives none; null for none. */
  readonly default: unknown;
  /** Smallest number, length of a text, or number of choices. */
  readonly minimum: number | null;
  /** Largest one. */
  readonly maximum: number | null;
}

/** Resident memory in bytes. */
export interface IMemoryUsage {
  /** That of the kernel's process. */
  readonly kernel: number;
  /** That of its child processes. */
  readonly children: number;
  /** That of the shell and its child processes; 0 if it does not run. */
  readonly shell: number;
}

/** A value of an agent's option. */
export interface IOptionChoice {
  /** The value. */
  readonly value: string;
  /** Its name for people; "" if the agent gives none. */
  readonly name: string;
  /** A longer description. */
  readonly description: string;
}

/** Outputs of a running cell. */
export interface IOutputBatch {
  /** Position of the first one, counted from 0. */
  readonly first: number;
  /** The outputs in the notebook format. */
  readonly outputs: readonly Readonly<Record<string, unknown>>[];
}

/** A change of a path by a rewind. */
export interface IPathChange {
  /** The path, relative to the workspace. */
  readonly path: string;
  /** Type of the change. */
  readonly kind: 'create' | 'restore' | 'merge' | 'delete' | 'permissions';
}

/** A task of an agent's plan. */
export interface IPlanEntry {
  /** The task. */
  readonly content: string;
  /** One of pending, in_progress, completed. */
  readonly status: string;
}

/** State of an Action. */
export interface IProgress {
  /** What it does. */
  readonly state: 'queued' | 'waiting' | 'running' | 'ended';
  /** Its last lines of output. */
  readonly text: string;
}

/** An Action that waits for a person. */
export interface IQuestion {
  /** Its event id. */
  readonly id: number;
  /** Name of the agent that asks; "" if it is unknown. */
  readonly agent: string;
  /** What the Action does. */
  readonly message: string;
  /** Why it waits, as one clause. */
  readonly reason: string;
  /** Why it waits, one by one. */
  readonly reasons: readonly string[];
  /** Diff of an edit; "" for other Actions. */
  readonly diff: string;
  /** Seconds until it is rejected. */
  readonly seconds_left: number;
  /** Whether it would run in a sandbox; null where nobody expects one. */
  readonly sandboxed: boolean | null;
  /**
   * Whether the agent asks for the values of the form, which can be empty,
   * instead of asking for permission.
   */
  readonly is_question: boolean;
  /** The values for which the agent asks. */
  readonly form: readonly IFormField[];
}

/** A capability that the administrator's policy switches off or limits. */
export interface IRestriction {
  /** Its name. */
  readonly capability: string;
  /** "off", or what is allowed. */
  readonly value: string;
  /** A sentence for people and agents. */
  readonly reason: string;
}

/** The changes of a rewind, planned or done. */
export interface IRewindPlan {
  /** One for each path, in the order of paths. */
  readonly changes: readonly IPathChange[];
  /**
   * Paths that stay, because others changed them or their contents are not
   * stored, with the reason.
   */
  readonly kept: Readonly<Record<string, string>>;
  /** Directories to make. */
  readonly make_directories: readonly string[];
  /** Directories to remove, which are empty by then. */
  readonly remove_directories: readonly string[];
  /** Other things that were not restored, each a sentence. */
  readonly notes: readonly string[];
  /** Permission bits of the directories to make. */
  readonly directory_modes: Readonly<Record<string, number>>;
  /** One for each variable that the turns or the rewind touched, by name. */
  readonly variables: readonly IVariableChange[];
}

/** State of a runtime. */
export interface IRuntimeStatus {
  /** Its id; a new one means that state was lost. */
  readonly generation: string;
  /** Absolute path of the workspace. */
  readonly workspace_dir: string;
  /** Working directory of the shell. */
  readonly cwd: string;
  /** Number of events in the log. */
  readonly events: number;
  /** Seconds since the last Action. */
  readonly idle_time: number;
  /** The Actions that run, a sentence each. */
  readonly running: readonly string[];
  /** Why Actions wait for a person, by their event ids. */
  readonly waiting: Readonly<Record<string, string>>;
  /** What agents may do without asking, a line each. */
  readonly allowed: readonly string[];
  /** Names of the plugins that run. */
  readonly plugins: readonly string[];
  /** Why other plugins do not run, by name. */
  readonly plugin_problems: Readonly<Record<string, string>>;
  /** Process id of the shell; null if it does not run. */
  readonly shell: number | null;
  /** One line about the sandbox of agents' commands. */
  readonly sandbox: string;
  /** Hosts whose text agents have read lately. */
  readonly untrusted_text: readonly string[];
  /** Method by which changes of files are attributed, or why they are not. */
  readonly changes_attributed: string;
  /** Whether a browser was started. */
  readonly browser: boolean;
  /** Memory of the kernel, its children and the shell. */
  readonly memory: IMemoryUsage;
  /** What enforces the boxes of commands; missing where there are none. */
  readonly sandbox_enforced_by?: string;
  /** Notice of settings that need a person's trust; missing if none do. */
  readonly untrusted_settings?: string;
  /** The cell that the kernel executes; null if there is none. */
  readonly cell: ICellSummary | null;
  /** Names of the open browsers. */
  readonly browsers: readonly string[];
  /** State of each started agent, by name. */
  readonly agents: Readonly<Record<string, 'busy' | 'ready'>>;
  /** Where agents' commands run. */
  readonly box: ICommandBox;
  /** What the administrator's policy switches off or limits. */
  readonly restrictions: readonly IRestriction[];
}

/** An agent skill. */
export interface ISkill {
  /** Name of the function. */
  readonly name: string;
  /** Its signature. */
  readonly signature: string;
  /** Its docstring. */
  readonly docstring: string;
}

/** A tool call of an agent. */
export interface IStep {
  /** Its title. */
  readonly title: string;
  /** One of pending, in_progress, completed, failed. */
  readonly status: string;
  /** The arguments, a line each. */
  readonly arguments: string;
  /** The end of the result. */
  readonly output: string;
  /** Paths of the files that the agent reports as changed. */
  readonly files: readonly string[];
}

/** Metadata of a file or directory of the store. */
export interface IStoreEntry {
  /** Its path, without a trailing slash; "" for the root. */
  readonly path: string;
  /** What it is. */
  readonly type: 'file' | 'directory';
  /**
   * Size in bytes; null for a directory, or where it would be slow to query.
   */
  readonly size: number | null;
  /**
   * Time of the last change in UTC, in ISO format; null if the store has none.
   */
  readonly modified: string | null;
}

/** The entries of a directory of the store. */
export interface IStoreListing {
  /**
   * Their paths, directories with a trailing slash, unless details were wanted.
   */
  readonly entries: readonly string[];
  /** Metadata of the first ones, if details were wanted. */
  readonly details: readonly IStoreEntry[];
  /** Number of entries. */
  readonly total: number;
}

/** A column of a table. */
export interface ITableColumn {
  /** Its name. */
  readonly name: string;
  /** Its type. */
  readonly type: string;
  /** Whether its values are numbers. */
  readonly is_number: boolean;
}

/** Rows of a table, as texts. */
export interface ITablePage {
  /** Name of the table's type. */
  readonly kind: string;
  /** The first columns. */
  readonly columns: readonly ITableColumn[];
  /** Number of further ones. */
  readonly omitted_columns: number;
  /** Label of each row. */
  readonly index: readonly string[];
  /** The values of each row. */
  readonly rows: readonly (readonly string[])[];
  /** Position of the first row among those that match. */
  readonly start: number;
  /** Number of rows of the table. */
  readonly total: number;
  /** Number of rows that match the filter. */
  readonly matching: number;
}

/** The tools in a kernel. */
export interface IToolList {
  /** Names of the tools that are skills. */
  readonly skills: readonly string[];
  /** All tools, as MCP lists them. */
  readonly tools: readonly Readonly<Record<string, unknown>>[];
}

/** The start of an upload or download. */
export interface ITransfer {
  /** By which its next steps refer to it. */
  readonly id: string;
  /** Name of the file or folder; "" for an upload or a file of the store. */
  readonly name: string;
  /** Size of the file in bytes; null where it is not known yet. */
  readonly size: number | null;
  /** Content security policy of a page; "" for other transfers. */
  readonly policy: string;
}

/** A prompt, and what the agent did; agent and start time identify it. */
export interface ITurn {
  /** The agent's name. */
  readonly agent: string;
  /** The prompt. */
  readonly prompt: string;
  /** Key of the request that sent the prompt; "" without. */
  readonly request: string;
  /** Start time in seconds since the epoch; 0 before. */
  readonly began: number;
  /** Id of the prompt's event; -1 before. */
  readonly first_event: number;
  /** For each of the parts, the id of the latest event when it began. */
  readonly part_events: readonly number[];
  /** The agent's thoughts. */
  readonly thoughts: string;
  /** Why it ended; "" while it runs. */
  readonly stop_reason: string;
  /** Cost of the turn; null if the agent does not report it. */
  readonly cost: number | null;
  /** Currency of the cost, as an ISO 4217 code. */
  readonly currency: string;
  /** Tokens by kind, if the agent reports them. */
  readonly usage: Readonly<Record<string, number>>;
  /** Tokens in the agent's context after the turn. */
  readonly context_tokens: number;
  /** Size of its context; 0 if it is unknown. */
  readonly context_size: number;
  /** Whether a rewind has undone its changes. */
  readonly undone: boolean;
  /** Id of the checkpoint at its start; null without. */
  readonly checkpoint: number | null;
  /** Paths of the files that changed without an edit. */
  readonly changed_by_commands: readonly string[];
  /** Remarks, such as missing tools. */
  readonly notices: readonly string[];
  /** Whether some of the result was dropped for its size. */
  readonly truncated: boolean;
  /** Names of what went with the prompt. */
  readonly attachments: readonly string[];
  /** Paths of the edited files. */
  readonly changed_files: readonly string[];
  /** The agent's plan. */
  readonly plan: readonly IPlanEntry[];
  /** Texts and steps in order. */
  readonly parts: readonly (string | IStep)[];
  /**
   * For each changed file that programs take as instructions, what a person
   * does that runs it.
   */
  readonly runs_when: Readonly<Record<string, string>>;
}

/** The state of a followed turn. */
export interface ITurnProgress {
  /** Names this state in the next request. */
  readonly state: string;
  /** Whether the turn has ended, or there is no such prompt. */
  readonly ended: boolean;
  /** The Actions of its agent that wait for a person. */
  readonly waiting: readonly IWaitingAction[];
  /** The turn; null before it starts, or without such a prompt. */
  readonly turn: ITurn | null;
}

/** The result of an undo or redo. */
export interface IUndoneChange {
  /** Why the file was left unchanged because of others; "" if it was not. */
  readonly kept: string;
  /** Why nothing was done; "" if something was. */
  readonly failure: string;
}

/**
 * Outputs of a cell that ended which its follower lacks; empty if nobody
 * follows it.
 */
export interface IUnseenOutputs {
  /** Position of the first one, counted from 0. */
  readonly first?: number | null;
  /** The outputs in the notebook format. */
  readonly outputs?: readonly Readonly<Record<string, unknown>>[] | null;
}

/** Address of VS Code. */
export interface IVSCodeAddress {
  /** Its connection token; null if it does not run. */
  readonly token: string | null;
  /** Its address; null if it does not run. */
  readonly url: string | null;
  /** Why VS Code is missing, and what to do; null if nothing is wrong. */
  readonly problem: string | null;
}

/** One variable in a rewind. */
export interface IVariableChange {
  /** Its name. */
  readonly name: string;
  /**
   * What happens to it: `rebound` is another object with the earlier content,
   * and `yours` was changed since by others, so it stays.
   */
  readonly outcome:
    'restored' | 'rebound' | 'removed' | 'unchanged' | 'yours' | 'not kept';
  /** Name of its type. */
  readonly type: string;
  /** Size in bytes, without the objects that it refers to. */
  readonly size: number;
  /** Why it stays, or which part of it stays; "" if nothing does. */
  readonly reason: string;
}

/** A variable in a table. */
export interface IVariableRow {
  /** Its name. */
  readonly name: string;
  /** Name of its type. */
  readonly type: string;
  /**
   * Shape of an array or table, or the length of a collection; "" for others.
   */
  readonly shape: string;
  /** Its size, 0 if it is unknown. */
  readonly bytes: number;
  /** The beginning of its value. */
  readonly head: string;
}

/** Variables in a table, or one variable. */
export interface IVariableView {
  /** A row for each of the first ones. */
  readonly variables: readonly IVariableRow[];
  /** Number of further ones. */
  readonly omitted: number;
  /** Names of modules. */
  readonly modules: readonly string[];
  /** Description of the one that was asked for; null for a table. */
  readonly text: string | null;
  /** Its images as data URLs. */
  readonly images: readonly string[];
}

/** An Action of an agent that waits for a person. */
export interface IWaitingAction {
  /** Its event id. */
  readonly id: number;
  /** What the Action does. */
  readonly message: string;
  /** Why it waits. */
  readonly reason: string;
}

/** Return the agents, the selected one, and the last turns. */
export interface IAgents {
  readonly op: 'agents';
}

/** Return the elements of the page that agents can act on, with their boxes. */
export interface IBrowserMarks {
  readonly op: 'browser_marks';
}

/** Return the outputs of a running cell after the first ones. */
export interface ICellOutputs {
  readonly op: 'cell_outputs';
  /** The cell's `follow` key. */
  readonly of: string;
  /** Number of outputs that the client has already. */
  readonly seen?: number;
  /** Seconds to wait for another one. */
  readonly wait?: number;
}

/** Return both texts of a changed file, or the cells of a notebook. */
export interface IChange {
  readonly op: 'change';
  /** The file, as `changes` lists it. */
  readonly path: string;
}

/** List the files that changed in this session, without their contents. */
export interface IChanges {
  readonly op: 'changes';
}

/**
 * List the checkpoints, oldest first, and the reason if there are no new ones.
 */
export interface ICheckpoints {
  readonly op: 'checkpoints';
}

/** Decide on an Action that waits for a person. */
export interface IConfirm {
  readonly op: 'confirm';
  /** Its event id. */
  readonly id: number;
  /** Whether it runs. */
  readonly approve: boolean;
  /** Interface in which the person decided. */
  readonly by?: string;
  /** Reason of a rejection, which the agent reads. */
  readonly reason?: string;
  /** Also approve later Actions of its type that wait for the same reasons. */
  readonly for_session?: boolean;
  /** Also approve those of later sessions in the workspace. */
  readonly for_workspace?: boolean;
  /** Answers to a question, by the names of its fields. */
  readonly values?: Readonly<Record<string, unknown>> | null;
}

/** List the Actions that wait for a person, with the diffs of edits. */
export interface IConfirmations {
  readonly op: 'confirmations';
  /** Only the Action of the request with this key. */
  readonly of?: string;
  /** Ids that the client has already. */
  readonly known?: readonly number[];
  /** Seconds to wait until the ids differ from those. */
  readonly wait?: number;
}

/**
 * List what the person undid and kept of the agents' changes in tabs: the last
 * 100.
 */
export interface IDecisions {
  readonly op: 'decisions';
}

/** Delete a file or directory of the store. */
export interface IDeleteFromStore {
  readonly op: 'delete_from_store';
  /** The path in the store. */
  readonly path: string;
}

/** Return the newest undelivered changes of the webhook. */
export interface IDeliveries {
  readonly op: 'deliveries';
}

/** Discard dead letters of the webhook; return their number. */
export interface IDiscardDeliveries {
  readonly op: 'discard_deliveries';
  /** The dead letters; null for all. */
  readonly ids?: readonly string[] | null;
}

/**
 * Start the download of a file or directory as a zip file; return its id and
 * name.
 */
export interface IDownload {
  readonly op: 'download';
  /** The file or directory. */
  readonly path: string;
}

/** Start the download of one file; return its id, name and size. */
export interface IDownloadFile {
  readonly op: 'download_file';
  /** The file. */
  readonly path: string;
}

/** Start the download of a file of the store; return the id of the transfer. */
export interface IDownloadFromStore {
  readonly op: 'download_from_store';
  /** The path in the store. */
  readonly path: string;
}

/**
 * Start the download of the page that shows a picture or a PDF file.
 *
 * The reply also has the page's content security policy.
 */
export interface IDownloadPage {
  readonly op: 'download_page';
  /** The file. */
  readonly path: string;
}

/** End the shell, a browser or an agent; the next use starts a new one. */
export interface IEndResource {
  readonly op: 'end_resource';
  /** What it is. */
  readonly kind: 'shell' | 'browser' | 'agent';
  /** Its name; "" for the shell. */
  readonly name: string;
}

/** Return an event. */
export interface IEvent {
  readonly op: 'event';
  /** Its id. */
  readonly id: number;
}

/** List events. */
export interface IEvents {
  readonly op: 'events';
  /** The first one. */
  readonly start_id?: number;
  /** Maximum number of events; null for all. */
  readonly limit?: number | null;
  /** Whether long strings are not clipped. */
  readonly whole?: boolean;
  /** Seconds to wait for the first one. */
  readonly wait?: number;
}

/** Execute the Action in the body, and return its Observation. */
export interface IExecuteAction {
  readonly op: 'execute_action';
  /** The path of an edit is relative to the shell's directory. */
  readonly relative_paths?: boolean;
}

/** Put an upload in place. */
export interface IFinish {
  readonly op: 'finish';
  /** The transfer. */
  readonly id: string;
}

/** Wait until a prompt's turn has another state than the known one. */
export interface IFollowTurn {
  readonly op: 'follow_turn';
  /** Key of the prompt's request, which may arrive later. */
  readonly of: string;
  /** State in the previous reply. */
  readonly known?: string;
  /** Maximum number of seconds to wait. */
  readonly wait?: number;
}

/** End a transfer, and discard what was uploaded. */
export interface IGiveUp {
  readonly op: 'give_up';
  /** The transfer; one that has ended already is no error. */
  readonly id: string;
}

/** Take the browser over, or hand it back; return whether a person has it. */
export interface IHoldBrowser {
  readonly op: 'hold_browser';
  /** Whether the person takes it over. */
  readonly hold: boolean;
}

/**
 * Interrupt the command in the shell, as the kernel's own interrupt does for
 * cells.
 */
export interface IInterrupt {
  readonly op: 'interrupt';
  /**
   * Time of the kernel's monotonic clock, in seconds; a command that started
   * after it is left alone.
   */
  readonly requested?: number | null;
}

/** End the turn of an agent, which stays ready. */
export interface IInterruptAgent {
  readonly op: 'interrupt_agent';
  /** Name of the agent. */
  readonly agent: string;
}

/**
 * Keep the text in the body in a file that agents can read; return its path.
 */
export interface IKeepText {
  readonly op: 'keep_text';
}

/** List the names in a directory. */
export interface IListFiles {
  readonly op: 'list_files';
  /** The directory, relative to the workspace; null for the workspace. */
  readonly path?: string | null;
}

/** List all paths in a directory of the store. */
export interface IListStore {
  readonly op: 'list_store';
  /** The directory; "" for the root. */
  readonly path: string;
  /**
   * Return instead what is known of the first entries, and the number of all.
   */
  readonly details?: boolean;
}

/** Set a checkpoint to which a rewind can return. */
export interface IMarkCheckpoint {
  readonly op: 'mark_checkpoint';
  /** Its name in lists. */
  readonly label: string;
}

/** Return the path of the notebook, on the machine of its editor, or "". */
export interface INotebookFile {
  readonly op: 'notebook_file';
}

/** Return the Observation of the last browser step. */
export interface IPage {
  readonly op: 'page';
}

/** Return the state of an Action and its last lines of output. */
export interface IPeek {
  readonly op: 'peek';
  /** Key of the request that executes it. */
  readonly of?: string;
  /** Its event id, where there is no key. */
  readonly id?: number | null;
  /** Do not reply before the state differs from this one. */
  readonly seen?: Readonly<Record<string, unknown>> | null;
  /** Seconds after which it is returned nevertheless. */
  readonly wait?: number;
}

/**
 * Prompt an agent; reply with its whole turn, which is broadcast while it runs.
 *
 * A prompt whose key has arrived before is not sent again; the reply is null.
 */
export interface IPromptAgent {
  readonly op: 'prompt_agent';
  /** The prompt. */
  readonly text: string;
  /** Name of the agent; null for the last one used. */
  readonly agent?: string | null;
  /** Start a new conversation. */
  readonly new?: boolean;
  /** Resume the agent's last conversation here, even from an earlier kernel. */
  readonly resume?: boolean;
  /** Options of its session to set first, such as `{"mode": "plan"}`. */
  readonly options?: Readonly<Record<string, string>>;
  /**
   * What goes with the prompt: objects with a `kind`, which is variable, file
   * or text, and a `name`; those of the last kind also have a `text` and may
   * have an `id`.
   */
  readonly context?: readonly Readonly<Record<string, unknown>>[];
  /**
   * Whether the request lasts so long that a reload must not wait for its
   * reply.
   */
  readonly wait?: boolean;
}

/** Return the next piece of a download; an empty one is the last. */
export interface IReceive {
  readonly op: 'receive';
  /** The transfer. */
  readonly id: string;
}

/** Record an edit that the server made for an agent, or a person in a tab. */
export interface IRecordEdit {
  readonly op: 'record_edit';
  /** The edit's Action, in wire form. */
  readonly action: Readonly<Record<string, unknown>>;
  /** Content of its Observation. */
  readonly content: string;
  /** Its unified diff. */
  readonly diff: string;
  /** Who made it. */
  readonly source?: 'agent' | 'user';
}

/** Note for agents that a person kept changes of a file in a tab. */
export interface IRecordKeep {
  readonly op: 'record_keep';
  /** Name of the file. */
  readonly name: string;
  /** Number of changes. */
  readonly count: number;
}

/** Rename a file or directory of the store; never replace an existing one. */
export interface IRenameInStore {
  readonly op: 'rename_in_store';
  /** The path in the store. */
  readonly path: string;
  /** The new path. */
  readonly to: string;
}

/** Send dead letters of the webhook again; return their number. */
export interface IResendDeliveries {
  readonly op: 'resend_deliveries';
  /** The dead letters; null for all. */
  readonly ids?: readonly string[] | null;
  /** Also send superseded ones. */
  readonly force?: boolean;
}

/**
 * Undo the turns since a checkpoint, or report what that would change.
 *
 * A rewind is a checkpoint itself and can be undone.
 */
export interface IRewind {
  readonly op: 'rewind';
  /** The checkpoint; null for the last turn. */
  readonly id?: number | null;
  /**
   * The only file to restore, absolute or relative to the workspace; null for
   * all.
   */
  readonly path?: string | null;
  /** Restore files; by default true unless there is a path. */
  readonly files?: boolean | null;
  /**
   * Restore variables; by default true unless there is a path. Those that
   * others changed since stay, unless a person asks for `everything`.
   */
  readonly variables?: boolean | null;
  /** Also overwrite what others changed since, which otherwise stays. */
  readonly everything?: boolean;
  /** Only report what would change. */
  readonly preview?: boolean;
  /** Who rewinds; an agent's request is always an agent's. */
  readonly source?: 'agent' | 'user';
}

/**
 * Return both texts of a file that a rewind would change, or the cells of a
 * notebook.
 */
export interface IRewindChange {
  readonly op: 'rewind_change';
  /** The file, relative to the workspace. */
  readonly path: string;
  /** The checkpoint; null for the last turn. */
  readonly id?: number | null;
  /** Also show what others changed since. */
  readonly everything?: boolean;
}

/**
 * Execute the `run_ipython` Action in the body; return its outputs in the
 * notebook format.
 */
export interface IRunCell {
  readonly op: 'run_cell';
  /** Number the cell like a person's. */
  readonly store_history?: boolean;
  /** Seconds after which a cell that has not started is withdrawn. */
  readonly begin_within?: number | null;
  /**
   * Key by which `cell_outputs` refers to the cell; "" if nobody follows it.
   */
  readonly follow?: string;
  /**
   * Number of outputs that the client has already; the reply has the others.
   */
  readonly seen?: number;
  /** Environment variables of the cell, for a client that follows it. */
  readonly env?: Readonly<Record<string, unknown>> | null;
}

/**
 * Return the cell that the kernel executes, with its output so far, or null.
 *
 * A long output is shortened, and the `file` of the reply has more of it.
 */
export interface IRunningCell {
  readonly op: 'running_cell';
}

/** Return what a person does that runs a changed file, or null. */
export interface IRunsWhen {
  readonly op: 'runs_when';
  /** The file. */
  readonly path: string;
  /** Its text before the change. */
  readonly before: string;
}

/** Write pieces of an upload, which are the request's body. */
export interface ISend {
  readonly op: 'send';
  /** The transfer. */
  readonly id: string;
}

/** List the agent skills, which `run_ipython` cells can call. */
export interface ISkills {
  readonly op: 'skills';
}

/** Return the state of the runtime: what runs, its box and its restrictions. */
export interface IStatus {
  readonly op: 'status';
}

/** Return the metadata of a file or directory of the store. */
export interface IStoreInfo {
  readonly op: 'store_info';
  /** The path in the store. */
  readonly path: string;
}

/** Return rows of a data frame. */
export interface ITableRows {
  readonly op: 'table_rows';
  /** The variable. */
  readonly name: string;
  /** Position of the first row among those that match. */
  readonly start?: number;
  /** Maximum number of rows. */
  readonly count?: number;
  /** Position of the column to sort by; null for the order of the table. */
  readonly sort?: number | null;
  /** Sort in descending order; missing values always come last. */
  readonly descending?: boolean;
  /** Text that any column of a row must contain, in upper or lower case. */
  readonly filter?: string;
}

/** List the tools of MCP servers behind the kernel, as MCP does, and skills. */
export interface ITools {
  readonly op: 'tools';
  /** Whether to list skills. */
  readonly skills?: boolean;
  /** Names in use: a tool with one of them is prefixed by its server's name. */
  readonly taken?: readonly string[];
}

/** Return the version of the tools. */
export interface IToolsChanged {
  readonly op: 'tools_changed';
  /** Do not reply before the version differs from this one. */
  readonly known?: number | null;
  /** Seconds after which it is returned nevertheless. */
  readonly wait?: number;
}

/**
 * Trust the folder's settings file with the contents that the person has seen.
 */
export interface ITrustFolder {
  readonly op: 'trust_folder';
  /** Digest of these contents. */
  readonly digest: string;
}

/**
 * Undo or redo the last edit of a file, or else what commands changed in this
 * session.
 */
export interface IUndoChange {
  readonly op: 'undo_change';
  /** The file. */
  readonly path: string;
  /** Redo what was undone. */
  readonly redo?: boolean;
  /**
   * Also overwrite later changes of others, which otherwise stay: then the
   * reply gives the reason.
   */
  readonly everything?: boolean;
}

/**
 * Return the folder's settings file, its digest, and its settings that need
 * trust to hold.
 */
export interface IUntrustedSettings {
  readonly op: 'untrusted_settings';
}

/**
 * Run exactly the MCP servers in the body behind the kernel; return the errors
 * of the others.
 *
 * A person must allow the programs that an agent starts, unless the kernel's
 * own box holds them.
 */
export interface IUpdateMcpServer {
  readonly op: 'update_mcp_server';
}

/** Start the upload of a file; return the id of the transfer. */
export interface IUpload {
  readonly op: 'upload';
  /** Absolute path of the folder. */
  readonly destination: string;
  /** Name of the file; a zip file is unpacked. */
  readonly filename: string;
  /** Refuse files that are not zip files. */
  readonly recursive?: boolean;
  /** Store a zip file as it is. */
  readonly exact?: boolean;
  /**
   * The only folder in which the file may be, relative to the workspace; null
   * for any.
   */
  readonly within?: string | null;
}

/** Start the upload of a file to the store; return the id of the transfer. */
export interface IUploadToStore {
  readonly op: 'upload_to_store';
  /** The path in the store. */
  readonly path: string;
}

/**
 * Execute a person's actions; return the error of the first one that failed, or
 * "".
 *
 * Agents wait until the browser is handed back.
 */
export interface IUseBrowser {
  readonly op: 'use_browser';
  /** Calls of the action language, one per line. */
  readonly actions: string;
}

/** List the notebook's variables, or describe one. */
export interface IVariables {
  readonly op: 'variables';
  /** The variable to describe; null for a list. */
  readonly name?: string | null;
  /** Names to list, such as `df*`; "" for all. */
  readonly pattern?: string;
}

/**
 * Return the address and the connection token of VS Code, or why it does not
 * run.
 */
export interface IVscode {
  readonly op: 'vscode';
}

/**
 * Wait for a picture other than the known one; return it with the state of the
 * browser.
 */
export interface IWatchBrowser {
  readonly op: 'watch_browser';
  /** Number of the known picture; -1 for none. */
  readonly known?: number;
  /** Maximum number of seconds to wait. */
  readonly wait?: number;
}

/** Cancel an Action while it waits for a person. */
export interface IWithdraw {
  readonly op: 'withdraw';
  /** Key of the request that executes it. */
  readonly of: string;
}

/**
 * List files of the workspace whose path contains a text, the best matches
 * first.
 */
export interface IWorkspaceFiles {
  readonly op: 'workspace_files';
  /** The text, in upper or lower case. */
  readonly text: string;
}
