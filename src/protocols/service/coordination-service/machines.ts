/**
 * The application's state machines. They are deterministic, and every member defines the same machine under the same
 * name. A member that has not yet defined a machine keeps the machine's commands until it does, and includes them in
 * its snapshots. If the commands take too much space, the member stops rather than drop any.
 */
import { EnvironmentError, unexpected } from "../../../core/errors.ts";
import { enter, entriesOf, lookUp, valuesOf } from "../keyspace/table.ts";
import { bytesOf, utf8BytesOf } from "../keyspace/text-size.ts";
import type { Answer, Command, Refusal, Result } from "./operations.ts";
import { MAX_OPERATION_BYTES, refuse } from "./operations.ts";
import { type Applying, type Data, type MachineState, nextRevision } from "./state.ts";

/**
 * A state machine with plain data as its state. `apply` does not modify its arguments, and returns a next state that
 * depends only on them.
 */
export interface MachineDefinition {
  /** Returns the state before the first command. */
  init(): unknown;
  /** Returns the next state, and the result for the caller. */
  apply(state: unknown, command: string): readonly [state: unknown, result: string];
  /** Answers a question about the state, without changing the state. */
  ask?(state: unknown, question: string): string;
  /**
   * Checks that a new state is plain data.
   *
   * @param checked an earlier state that is known to be plain data; parts shared with it are not checked again. If
   * undefined, everything is checked
   * @returns why the state is not plain data (replicas that restored it from a snapshot would diverge). Null if it is
   * plain data
   */
  fault?(state: unknown, checked: unknown): string | null;
}

/** The definitions of machines, keyed by name. May be extended while the service is running. */
export type MachineDefinitions = Record<string, MachineDefinition>;

const definitionOf = (machines: MachineDefinitions, name: string): MachineDefinition | null =>
  Object.hasOwn(machines, name) ? (machines[name] as MachineDefinition) : null;

/** A replica's data, without listeners. */
type Replicated = Pick<Applying, "data" | "limits">;

/** Applies a command to a state machine, or stores it until the machine is defined. */
export function execute(on: Applying, machines: MachineDefinitions, operation: Command): Result {
  const { data, limits } = on;
  const { machine: name, command } = operation;
  const known = lookUp(data.machines, name);
  if (known === null && data.machines.size >= limits.maxMachines)
    return refuse("too-many", `there are already ${limits.maxMachines} state machines`);
  nextRevision(data);
  const machine: MachineState = known ?? {
    state: null,
    isDefined: false,
    pending: [],
    pendingBytes: 0,
    bytes: 0,
    unmeasured: 0,
  };
  if (known === null) enter(data.machines, name, machine);
  const definition = definitionOf(machines, name);
  if (definition === null) {
    keep(on, name, machine, command);
    return { type: "unknown" };
  }
  try {
    catchUp(on, machine, definition);
  } catch (error) {
    return failed(error);
  }
  return run(on, machine, definition, command);
}

const failed = (error: unknown): Refusal =>
  refuse("machine-failed", String(error instanceof Error ? error.message : error).slice(0, 200));

function begin(machine: MachineState, definition: MachineDefinition): void {
  if (machine.isDefined) return;
  machine.state = definition.init();
  machine.isDefined = true;
}

/** The memory that a pending command needs in addition to its text. */
const COMMAND_BYTES = 32;

/**
 * Stores a command for an undefined machine. @throws EnvironmentError if the command does not fit; it stays in the log
 * and runs once the machine is defined
 */
function keep({ data, limits, tell }: Applying, name: string, machine: MachineState, command: string): void {
  const added = COMMAND_BYTES + bytesOf(command);
  machine.pending.push(command);
  machine.pendingBytes += added;
  const bytes = waitingBytes(data);
  const { maxPendingBytes } = limits;
  if (bytes > maxPendingBytes) throw undefinedMachine(name, bytes, `the maximum is ${maxPendingBytes}`);
  const share = maxPendingBytes / TOLD_SHARES;
  if (Math.floor(bytes / share) > Math.floor((bytes - added) / share))
    tell({ type: "commandsWait", machine: name, bytes, maxBytes: maxPendingBytes });
}

/** The number of times that `commandsWait` is emitted before the limit is reached. */
const TOLD_SHARES = 8;

/** Returns the total size, in bytes, of the commands whose machines are not defined here. */
export const waitingBytes = ({ machines }: Data): number =>
  valuesOf(machines).reduce((sum, { pendingBytes }) => sum + pendingBytes, 0);

function undefinedMachine(name: string, bytes: number, why: string): EnvironmentError {
  return new EnvironmentError(
    "undefined-machine",
    `expected the state machine "${name}" to be defined at this member, but it is not: ${bytes} bytes of commands are waiting for it, and ${why}. No data is lost: restart the member, and call replicated(${JSON.stringify(name)}, …) as soon as join() resolves, at every member`,
  );
}

/**
 * Runs the commands that were decided before the machine was defined here. @throws the error from `init`; the commands
 * then stay pending
 */
function catchUp({ limits }: Replicated, machine: MachineState, definition: MachineDefinition): void {
  begin(machine, definition);
  if (machine.pending.length === 0) return;
  const commands = machine.pending;
  machine.pending = [];
  machine.pendingBytes = 0;
  for (const command of commands) run({ limits }, machine, definition, command);
}

/** Runs all defined machines' pending commands, so that snapshots contain states instead of commands. */
export function catchUpAll(on: Replicated, machines: MachineDefinitions): void {
  for (const [name, machine] of entriesOf(on.data.machines)) {
    const definition = definitionOf(machines, name);
    if (definition === null || machine.pending.length === 0) continue;
    try {
      catchUp(on, machine, definition);
    } catch {} // The next command will report the error.
  }
}

/** Returns whether all states can be saved. A state that has been changed in place may no longer be plain data. */
export function areSound({ machines }: Data, definitions: MachineDefinitions): boolean {
  return [...entriesOf(machines)].every(([name, { state, isDefined }]) => {
    const definition = definitionOf(definitions, name);
    return !isDefined || definition === null || (definition.fault?.(state, undefined) ?? null) === null;
  });
}

/**
 * Runs a command. The state stays unchanged if the command throws, or if the new state or the result is too large or is
 * not plain data.
 */
function run(
  { limits }: Pick<Applying, "limits">,
  machine: MachineState,
  definition: MachineDefinition,
  command: string,
): Result {
  try {
    const [state, result] = definition.apply(machine.state, command);
    if (utf8BytesOf(result) > MAX_OPERATION_BYTES)
      return refuse("too-large", `a result has at most ${MAX_OPERATION_BYTES} bytes`);
    const isMeasured = isDue(machine, limits.maxMachineBytes);
    const bytes = isMeasured ? utf8BytesOf(JSON.stringify(state) ?? "") : 0;
    const checked = isMeasured ? undefined : machine.state;
    const fault = definition.fault?.(state, checked) ?? null;
    if (fault !== null) return failed(fault);
    if (bytes > limits.maxMachineBytes && bytes >= machine.bytes)
      return refuse("too-large", `the state of a machine takes at most ${limits.maxMachineBytes} bytes as JSON`);
    machine.unmeasured = isMeasured ? 0 : machine.unmeasured + 1;
    if (isMeasured) machine.bytes = bytes;
    machine.state = state;
    return { type: "executed", result };
  } catch (error) {
    return failed(error);
  }
}

/**
 * The average number of bytes to measure per command, which means that a large state is not measured after every
 * command. All replicas measure after the same commands.
 */
const MEASURED_BYTES = 65_536;

const isDue = ({ bytes, unmeasured }: MachineState, maxMachineBytes: number): boolean =>
  bytes > maxMachineBytes || unmeasured >= Math.floor(bytes / MEASURED_BYTES);

/** Answers a question about a machine's state. */
export function ask(on: Replicated, machines: MachineDefinitions, name: string, question: string): Answer {
  const definition = definitionOf(machines, name);
  if (definition?.ask === undefined)
    return refuse("unknown-machine", `expected this member to define a state machine ${name} with a query function`);
  const machine = lookUp(on.data.machines, name);
  try {
    if (machine !== null) catchUp(on, machine, definition);
    const answer: unknown = definition.ask(machine === null ? definition.init() : machine.state, question);
    return typeof answer === "string"
      ? { type: "answered", answer }
      : failed(unexpected("the answer", "a text", answer));
  } catch (error) {
    return failed(error);
  }
}
