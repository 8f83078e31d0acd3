/**
 * Every error code that a program or a person can get, by error class and topic. Each description is one sentence about
 * the meaning, followed by the remedy. docs/reference/errors.md is generated from this file, and
 * test/docs/errors.test.ts compares both with the code. Import only types from this file, because the descriptions are
 * not needed at run time.
 */
import type { Refusal } from "./transport/frames.ts";

/** The call was correct, but the member or client could not complete it. `phase` describes the outcome. */
const coordination = {
  "Locks, semaphores, barriers and queues": {
    "acquire-timeout":
      "The call timed out after `timeoutMs`. Retry, or raise `timeoutMs`; the message says what blocked it.",
    "acquire-aborted": "Your `signal` ended the wait. You hold nothing.",
    "too-many-waiters":
      "Too many calls from this process are waiting for this name. Wait for some of them, or raise `limits.maxWaiters`.",
    "grant-lost":
      "You may no longer hold the grant, and another member may acquire it. Stop the work at once, then acquire it again.",
    released: "You released the grant, and its `signal` was aborted with this error as the reason. Nothing to do.",
  },
  Elections: {
    "lead-aborted": "Your `signal` ended the campaign or the leadership. Call `lead()` to campaign again.",
  },
  "Maps, counters, transactions and state machines": {
    "request-timeout":
      "The call got no answer within `timeoutMs`. If the phase is `uncertain`, check the outcome; then retry.",
    "request-aborted": "Your `signal` ended the call. If the phase is `uncertain`, check the outcome.",
    "outcome-unknown": "The operation may have taken effect, but at most once. Read the state before you retry.",
    overloaded:
      "Too many calls are in progress, or other writers always got ahead of this one. Await earlier calls, and retry later.",
    "session-ended":
      "The caller's session expired before the operation was applied. Retry: the member opens a new session.",
    "state-full":
      "The shared state has reached one of its limits. Delete data that you do not need; see the page on limits.",
    overflow: "The counter would exceed the range of safe integers. Set it to another value.",
    compacted:
      "The changes after this revision are no longer available. Read the map with `range()`, and watch from its revision.",
    "machine-failed": "A state machine's `apply()` function threw an error. Fix the function; the state is unchanged.",
  },
  Channels: {
    "send-timeout": "The send did not complete within `timeoutMs`. Check the phase before you send the message again.",
    "send-aborted": "Your `signal` ended the send. Check the phase before you send the message again.",
    "send-uncertain":
      "The group expelled this member during the send. Send the message again with an id of your own, so that receivers can detect duplicates.",
    "channel-full": "Too many messages are waiting to be sent. Await some or all of your sends.",
    "channel-closed": "This channel object was closed. Open the channel again.",
    "reader-too-slow": "The reader fell too far behind and missed messages. Read faster, then start a new reader.",
    "state-refused":
      "The member that holds the state could not provide it to the new reader. Fix its `state()` function.",
    "instance-refused":
      "Other members use this channel with another `order` or `transport`. Use the same settings on all members.",
  },
  "Members and clients": {
    "ready-timeout": "The member was not ready within `timeoutMs`. The phase gives the reason.",
    "ready-aborted": "Your `signal` ended the wait. The phase gives the reason.",
    "member-left": "This member has left the cluster. Call `join()` again if you did not intend that.",
    "member-failed": "This member's disk or one of its algorithms failed. Read the log, then restart the process.",
    "member-removed":
      "This member was removed from the cluster. Add a member with a new id, and start it with an empty folder.",
    "no-endpoint": "No endpoint accepted the connection. The message gives the reason for each endpoint.",
    forbidden:
      "The credentials are missing, or their role does not allow this call. Check the token and the roles file.",
    "client-refused":
      "The server closed this client's connection permanently. The message gives the reason; connect again once it is fixed.",
    "client-closed": "You closed this client. Connect again to continue.",
  },
  "Changing the members": {
    "change-under-way": "Another change to the member list is in progress. Wait for `settled()`, then retry.",
    "last-voter": "The change would leave the cluster without a voter. Add or promote a member first.",
  },
} as const;

/** The caller must fix an argument, an option, a file or a command. The call had no effect. */
const usage = {
  "Calls to members and clients": {
    "bad-option": "An option is unknown or has an invalid value. Correct it; the message gives the expected value.",
    "bad-name": "The name is empty, too long or reserved. Choose another name.",
    "bad-key": "A map key is not a valid string, or a key file cannot be used. The message gives the expected value.",
    "bad-value": "A value, state or result is neither plain JSON data nor bytes. Convert it first.",
    "too-large":
      "A value, transaction or result exceeds its size limit. Store the data elsewhere, and share a reference to it.",
    "bad-payload": "A message's payload is not plain JSON data. Convert it first.",
    "payload-too-large": "A message's payload or a channel's state is too large. Send it in parts.",
    "bad-operation":
      "The operation is invalid: for example, it requests more permits than the semaphore has. Correct the call.",
    "bad-token": "A fencing token is not a natural number. Pass `grant.token`.",
    "stale-token": "`guard()` has seen a higher token. Reject the write: its sender has lost the lock.",
    "other-setting":
      "The name is already in use with different settings, such as another capacity or order. Use the same settings everywhere.",
    "already-campaigning": "This process is already campaigning in this election. Call `lead()` only once.",
    "transaction-over": "The transaction was used after its function returned. Await every call inside the function.",
    "unknown-machine": "This member has not defined the state machine. Call `replicated()` with its definition first.",
    "state-in-use": "The channel already has a stateful reader in this process. Use that reader.",
    "state-needs-order": 'A stateful reader needs the order "total" or "causal-total". Set it on the channel.',
    "no-multicast": 'A channel with `transport: "udp"` needs the `multicast` option of `join()`. Set it, or use TCP.',
    "bad-multicast": "A field of `multicast` is invalid. The message gives the expected value.",
    "unknown-member": "No voting member has this id. List the members to find valid ids.",
    "member-exists":
      "The id or address is taken, or the id belonged to a removed member. Choose another id or address.",
    "unknown-node": "No node or member has this id. The message lists the known ids.",
    "registry-taken": "The metric registry already has a metric with this name. Use one registry per member.",
    "session-too-long":
      "`sessionMs` exceeds the maximum that the ZooKeeper servers allow. Lower it, or raise `maxSessionTimeout`.",
    "no-library": "A package that this feature needs is not installed. Install the package that the message names.",
    "no-websocket": "This runtime has no global `WebSocket`. Import `connect` from `coterie` instead.",
    "not-running": "The node has not started, or has stopped. Call it only while it is running.",
    "bad-host":
      "The hosts in the SRV records do not identify the members. Use one host per member, such as `coterie-2.coterie`.",
  },
  "Configuration, keys, journals and snapshots": {
    "bad-config": "The config file is missing or invalid. The message lists every problem with its field.",
    "bad-limits": "`limits.maxFrameBytes` is too small. Raise it.",
    "bad-roles": "The roles file is invalid. The message names the field.",
    "bad-certificate": "A certificate or its key cannot be used. Create new ones with `coterie cert --renew`.",
    "wrong-authority": "The certificate authority's key has an unsupported type. Use an elliptic-curve key.",
    "half-an-authority": "Only one of `ca.pem` and `ca.key` exists. Restore the other, or choose another folder.",
    "no-authority": "`--renew` needs `ca.pem` and `ca.key`. Specify the folder that contains them.",
    "no-certificate": "The file to renew is not a certificate. Pass the names with `--host`.",
    "already-there": "The certificate already exists. Use `--renew` to replace it.",
    "no-keys": "The protocol signs messages, but keys are missing. Configure `keys`.",
    "no-data-directory": "The protocol keeps a journal, but no folder is set. Set `dataDir` or `--data`.",
    "no-journal": "The protocol keeps a journal, but the host was created without one. Pass a journal to the host.",
    "journal-closed": "The journal is closed. Open it again.",
    "journal-version": "Another release wrote the journal. Run that release.",
    "bad-slot": "A journal slot's name is empty or too long. Choose another name.",
    "slot-taken": "The journal slot is already open. Open each slot only once.",
    "too-many-slots": "The journal has no room for another slot. Use fewer slots.",
    "folder-in-use": "The folder is not empty. Use another folder, or move its contents elsewhere.",
    "cannot-replace":
      "The folders that you gave are not enough to rebuild the lost one. The message names the missing part.",
    "cannot-save":
      "One of the folders does not belong to a member started with `join()`. Specify the `dataDir` of stopped members.",
    "bad-snapshot": "The file is not a complete snapshot. Use another copy.",
    "cannot-read": "A file cannot be read. Check its path and permissions.",
    "cannot-write": "The output file cannot be created. Check its path and permissions.",
  },
  "HTTP, admin pages and the studio": {
    "bad-request": "A field of the request is invalid. The message names it; see `/openapi.json`.",
    "bad-command": "The request body or the command is invalid. The message gives the expected value.",
    "body-too-long": "The request body is too long. Send a shorter one.",
    "unknown-session": "The session has ended or never existed. Open a new session.",
    "bad-faults": "The description of the faults to inject is invalid. The message names the field.",
    "bad-act":
      "The studio cannot do this now, for example because the node to kill has already exited. Check the node's state.",
    refused: "The member rejected the request. The message gives the reason.",
  },
  "Command line": {
    "bad-argument": "An argument or option is invalid. The message gives the expected value; see `--help`.",
    "no-process-groups": "`coterie lock` and `coterie elect` do not run on Windows. Use `join()` or `connect()` there.",
    "unknown-protocol": "No protocol has this name. The message suggests or lists names; see `coterie protocols`.",
    "bad-protocol-file":
      "The file of a protocol does not exist, cannot be loaded, or does not export a protocol. The message gives the reason.",
    "unknown-variant": "The protocol has no such variant. See `coterie protocols NAME`.",
    "bad-folder":
      "The campaign's folder cannot be used, or contains results of another campaign. Choose another folder with `--out`.",
    "bad-campaign": "The campaign file is invalid. The message names the field.",
    "bad-campaign-word": "A field of an experiment is unknown or invalid. Use the names of the command-line options.",
    "bad-scenario": "The scenario file is invalid. The message gives the line, column and field.",
    "bad-trace": "The file is not a trace, or entries are missing. Record it again.",
    "bad-selection": "The chosen part of the trace does not exist. The message lists valid values.",
    "bad-history": "The history is not well-formed. The message gives the line.",
    "bad-edn": "The history is not valid EDN. The message gives the line and column.",
    "unknown-model": "No model has this name. The message lists the models.",
    "bad-limit": "A search limit is not a number above 0. Correct it.",
    "bad-proof": "The proof file is invalid, or its keys differ from yours. Request a new one.",
  },
  "Simulator, checker and your own protocols": {
    "bad-behaviour": "No Byzantine behavior has this name. The message lists the behaviors.",
    "bad-quorum": "The number of nodes or the quorum is invalid. Correct it.",
    "bad-voting-sets":
      "This construction of voting sets does not exist for this number of nodes. Choose another construction.",
    "bad-partition": "The network partition is invalid. The message gives the expected value.",
    "bad-rate": "The clock rate is not a number above 0. Correct it.",
    "bad-fate": "The journal's fate in the crash is invalid. The message gives the expected value.",
    "unknown-property": "The protocol has no such property. The message lists its properties.",
    "no-faults":
      "A search for the fewest faults needs at least one kind of fault. Allow crashes, recoveries, losses or duplications.",
    "no-handler": "The protocol has no handler for this message, command or timer. Add one.",
    "not-plain":
      "State, messages and records must be plain data. The message says where the problem is and what to use instead.",
    "no-wire-form": "The message shape cannot be encoded. The error message gives the reason.",
    malformed: "The received bytes do not match the declared shape. The connection is closed; check the versions.",
    "used-request": "The request id has already been used. Use a new id.",
    "in-step": "A handler tried to change the simulation during a step. Change the simulation between steps.",
    begun: "The simulation has already run. Load the snapshot before you run it.",
    "other-nodes": "The snapshot and the simulation have different nodes. Use the same nodes.",
    "node-down": "The node has crashed. Restart it first.",
    "node-up": "The node is already running. Crash it first.",
    "node-paused": "The node is already paused. Resume it first.",
    "node-running": "The node is not paused. Pause it first.",
    "no-rest": "The run never becomes idle. Set an end, for example with `until`.",
    "too-many-pending": "Too many messages and timers are pending. Use fewer nodes.",
  },
  "Tests in virtual time": {
    "already-running": "The member or client is already running. Call `crash()` or `kill()` first.",
    "world-is-running": "Another `run()` call in this world has not finished. Await it.",
    "world-at-rest":
      "The test is waiting for something outside the world, such as real I/O. Keep everything that it awaits inside the world.",
    "world-too-long": "The test did not finish within its limit of virtual time. Fix the wait, or raise `limitMs`.",
    "world-stands-still": "Events keep repeating without virtual time advancing. Find the loop that does not wait.",
  },
} as const;

/** A disk, socket or process failed. The call may work later. */
const environment = {
  "Journals and disks": {
    "journal-in-use": "Another process is using the journal. Stop that process, or use another folder.",
    "journal-full": "The journal has reached its maximum size. Free space or raise the limit, then restart.",
    "journal-path": "The journal's path is too long for a socket. Choose a shorter path.",
    "damaged-journal": "The journal is damaged and cannot be read. Treat the folder as lost; see the page on recovery.",
    "foreign-journal": "The journal belongs to another node. Give each member its own folder.",
    "other-journal": "The journal belongs to another protocol or version. Use another folder, or run that version.",
    "wrong-members":
      "The journal and the configuration list different members. Start the member with the list from the journal; see the page on journals.",
    "member-removed": "The journal belongs to a removed member. Add a member with a new id and an empty folder.",
    "cannot-make-journal": "The journal's folder cannot be created. Check the path, permissions and disk.",
    "cannot-open-journal": "The journal cannot be opened. Check the path, permissions and disk.",
    "cannot-read-journal": "The journal cannot be read. Check the disk.",
    "cannot-write-journal": "A write to the journal failed, so the member stops. Check the disk, then restart.",
    "slow-disk": "The disk cannot keep up with the load, so the member stops. Use a faster disk or lower the load.",
    "undefined-machine":
      "Too many commands are waiting for a state machine that this member has not defined. Define it right after `join()`.",
  },
  "Network and servers": {
    "cannot-listen": "The member cannot bind its address. Free the port or choose another address.",
    "cannot-discover": "DNS did not return all members in time. Check the SRV records.",
    "engine-unavailable": "The engine's server does not answer, or rejected the call. Check the server.",
    "no-answer": "A member does not answer. Check that it is running and that the address is right.",
    refused: "The member could not accept the request at this time. The message gives the reason.",
    "too-many-instances":
      "This member uses too many elections or channels. Close some, or raise `limits.maxInstances`.",
    "too-many-sessions": "Too many programs have sessions with this member. Use another member.",
    "too-many-watches": "Too many watches are open on this member. Use another member.",
    "too-many-bodies": "Too many large requests are in progress. Retry later.",
    stopped: "The node or the run was stopped before it finished. Start it again.",
  },
  "Files and values": {
    "bad-value": "Another program wrote a value that cannot be read. Write it again through Coterie.",
    "cannot-read": "A certificate, key or roles file cannot be read. Check its path and permissions.",
    "cannot-write": "A certificate or key cannot be written. Check the path, permissions and disk.",
    "no-certificates": "The package `@peculiar/x509` is not installed. Install it to make certificates.",
  },
  "Command line": {
    "nobody-alive": "No member answers. Start the members, or give each one an admin address.",
    "no-leader": "No running member knows who the leader is. Start a majority of the members.",
    "no-agreement": "The members report different leaders. Wait, then check the links between them.",
    unreachable: "No cluster answers at this address. Start it, or correct `--admin`.",
    "not-ready": "The local cluster did not start in time. The member's log gives the reason.",
    problems: "`coterie doctor` found problems. Follow the advice below each one.",
    "cannot-record": "The recording cannot continue. Free disk space.",
    "no-renderer": "The package `@resvg/resvg-js` is not installed. Install it, or use `--svg`.",
    "no-supervisor":
      "The process that supervises the command cannot be started. Check the limits on processes and files.",
    "supervisor-ended":
      "The process that supervises the command exited, so the command was killed. Find out why it exited.",
    "different-clocks": "Processes read different monotonic clocks. Run them in the same time namespace.",
    "out-of-memory": "The search ran out of memory. Set a bound, such as `--max-states`.",
    "thread-ended": "A worker thread ended unexpectedly. Run the command again.",
    failed: "The error does not have a more specific code. The message comes from the operating system.",
    "no-benchmarks": "The benchmarks have not been built. Run `npm run build` in a checkout.",
    "benchmark-failed": "A benchmark failed. Its output gives the reason.",
  },
} as const;

/** An algorithm is wrong, or a check has found a violation. The run must stop here. */
const invariant = {
  "Your own protocols": {
    "handler-failed": "A handler threw an error. The message names the handler; fix it.",
    "not-repeatable":
      "A handler gave two different results for the same input. Use `ctx.choose` for random choices and timers for time.",
    "state-changed": "The state was changed outside a handler. Do not keep references to it.",
    "endless-step": "A single step has too many effects. Look for a loop in the handler.",
    "endless-wires": "The parts of an assembly send events to each other endlessly. Remove the cycle.",
    "two-wires": "An event of a part is wired twice. Keep one wire.",
    "layer-refused": "A multicast layer sent more than the layer below it can accept. Send less in the upper layer.",
    "bad-message": "A message does not match its declared shape. Correct the message or the shape.",
    "bad-command": "A command does not match its declared shape. Correct the command or the shape.",
    "bad-record": "A journal record does not match its declared shape. Correct the record or the shape.",
    "bad-reply": "A reply does not match its declared shape. Correct the reply or the shape.",
    "bad-timer": "A timer's duration is invalid. The message gives the expected value.",
    "no-choice": "`ctx.choose` was called without options. Check for an empty list first.",
    "unknown-receiver": "A message is addressed to a node that does not exist. Send only to `ctx.peers`.",
    "unknown-request": "A reply does not match any open request at this node. Reply only to open requests.",
    "answered-twice": "A request was answered twice. Reply only once.",
    "bad-compaction": "Journal records in several slots were replaced together. Replace one slot at a time.",
    "no-replay": "The protocol has a journal but no handler to replay it. Add `replay`.",
    "bad-signing": "A signature does not match its value or its signer. Sign with `ctx`.",
    "large-record": "A journal record is too large. Split it.",
    "bad-time": "An event's time is not a number. Check the durations in the test.",
    "changes-state": "A read-only operation changed the state of its model. Fix the model.",
  },
  "Defects in Coterie": {
    "lost-path":
      "The checker cannot reproduce a run that it found. Report a bug, and include the command that you ran.",
    "no-way": "The checker found contradictory states. Report a bug, and include the command that you ran.",
    "unknown-history":
      "A property needs a history that was not recorded. Report a bug, and include the command that you ran.",
    "not-the-cut": "A member entered a view without having all of its messages. Report a bug, and include the logs.",
    "window-exceeded": "A channel sent more messages than its window allows. Report a bug, and include the logs.",
    "bad-snapshot": "A snapshot of the log is incomplete. Report a bug, and include the logs.",
  },
} as const;

/** All codes by error class and topic, each with its meaning and remedy. */
export const errorCodes = {
  CoordinationError: coordination,
  UsageError: usage,
  EnvironmentError: environment,
  InvariantViolation: invariant,
} as const;

type Keys<T> = T extends unknown ? keyof T & string : never;
/** The codes of a `CoordinationError`. */
export type CoordinationCode = Keys<(typeof coordination)[keyof typeof coordination]>;

/** The meaning of each `phase`. */
export const phases = {
  "never-acquired": "Nothing was acquired, and the call is no longer waiting. You can retry at any time.",
  lost: "You held it, but no longer do. Stop the work that relies on it.",
  released: "You released it. Nothing to do.",
  "never-sent": "The operation did not take effect, and never will. You can retry at any time.",
  uncertain:
    "The operation took effect, will take effect soon, or never will. Read the state before you retry, or make the retry harmless.",
  missed: "The operation took effect, but this reader missed it. Read the state again.",
  "no-majority": "The member cannot reach a majority. Start other members, or repair the links.",
  "no-log-leader": "A majority is reachable, but the log does not have a leader yet. Wait.",
} as const;

/** The phases of a `CoordinationError`: what is known about the outcome of the call. */
export type Phase = keyof typeof phases;

/** A `code` in an HTTP response, or in the final message on a WebSocket, that is not one of the error codes above. */
export const pageCodes = {
  absent: "The key does not exist (404). Nothing to do.",
  changed: "The revision of the key's last write is not `ifRevision` (409). Read the key again, then retry.",
  "no-page": "The path does not name a page (404). See `/openapi.json`.",
  "bad-message": "The client sent a message that is not part of the protocol. Update the client.",
  "bad-version": "The client speaks another version of the client protocol. Use the same release as the member.",
  moved: "The client has opened another connection. Use the new one.",
  "role-changed": "The client's role has changed. Connect again.",
  "no-leader": "The member does not know who leads the log. Try another member.",
  unavailable: "The member cannot serve clients right now. Try another member.",
  "no-hello": "The client did not send a hello in time. Send a hello first.",
  "too-many": "The client is following too many names. Use fewer names.",
  "too-many-clients": "The member already serves the maximum number of clients. Try another member.",
  silent: "The member has not received anything from the client for too long. Connect again.",
} as const;

/** Why two members have no link, as printed by `coterie status` and `coterie doctor`. */
export const linkRefusals = {
  "wrong-version": "The two releases use different wire versions. Upgrade the older member.",
  "wrong-cluster": "The members belong to clusters with different names. Correct `cluster` or the address.",
  "wrong-protocol": "The members run different protocols or options. Use the same config everywhere.",
  "wrong-node": "Another node answers at this address. Correct the addresses.",
  "unknown-node": "The node is not on the list of members. Add it first.",
  "duplicate-id": "Another running node has the same id. Stop one of them.",
  "wrong-certificate": "The certificate does not belong to this member. Create one with `coterie cert`.",
  malformed: "The received bytes are not part of the protocol. Check which program listens at the address.",
  "wrong-members": "The journals list different members. See the page on journals.",
  "lost-journal":
    "A member lost its journal, but other members remember it. Replace the member; see the page on recovery.",
  "not-founded":
    "A member was started with `existing`, but its cluster has not been founded yet. Start the founders first.",
  removed: "One of the two was removed from the cluster. Stop that member.",
  unknown: "A newer release gave a reason that this release does not know. Upgrade this member.",
} as const satisfies Record<Refusal | "unknown", string>;
