/**
 * Every error code that a program or a person can get, by error class and topic. Each text is one sentence on the meaning, then
 * the remedy. docs/reference/errors.md is generated from it, and test/docs/errors.test.ts compares both with the code. Import
 * only types from here, because the texts are not needed at run time.
 */
import type { Refusal } from "./transport/frames.ts";

/** The call was correct, but the member or client could not complete it. `phase` describes the outcome. */
const coordination = {
  "Locks, semaphores, barriers and queues": {
    "acquire-timeout": "The call waited for `timeoutMs`. Retry, or raise `timeoutMs`; the message names an obstacle.",
    "acquire-aborted": "Your `signal` ended the wait. Nothing is held.",
    "too-many-waiters":
      "Too many calls of this process wait for this name. Wait for some of them, or raise `limits.maxWaiters`.",
    "grant-lost":
      "The grant is no longer certain, and another member may get it. Stop the work at once, then acquire again.",
    released: "You released it: the reason of the grant's `signal`. Nothing to do.",
  },
  Elections: {
    "lead-aborted": "Your `signal` ended the campaign or the leadership. Call `lead()` to campaign again.",
  },
  "Maps, counters, transactions and state machines": {
    "request-timeout":
      "The call got no answer within `timeoutMs`. Check the outcome if the phase is `uncertain`, then retry.",
    "request-aborted": "Your `signal` ended the call. Check the outcome if the phase is `uncertain`.",
    "outcome-unknown": "The operation may have taken effect, at most once. Read the state before you retry.",
    overloaded:
      "Too many calls are in progress, or other writers were always faster. Retry later, and await earlier calls.",
    "session-ended":
      "The session of the caller expired before the operation was applied. Retry: the member opens a new session.",
    "state-full": "A limit of the shared state is reached. Delete what you do not need: see the limits.",
    overflow: "The counter would leave the safe integers. Set it to another value.",
    compacted:
      "The changes after this revision are no longer kept. Read the map with `range()`, and watch from its revision.",
    "machine-failed": "The `apply()` function of a state machine threw. Fix it; the state is unchanged.",
  },
  Channels: {
    "send-timeout": "The message was not settled within `timeoutMs`. Check the phase before you send it again.",
    "send-aborted": "Your `signal` ended the send. Check the phase before you send it again.",
    "send-uncertain":
      "The group expelled this member during the send. Send again with an id of your own, so that receivers can detect duplicates.",
    "channel-full": "Too many messages wait to be sent. Await your sends, or some of them.",
    "channel-closed": "This use of the channel was closed. Open the channel again.",
    "reader-too-slow":
      "The reader missed messages, because more arrived than are kept. Read faster, then start a new reader.",
    "state-refused": "The member that holds the state could not give it to the new reader. Fix its `state()` function.",
    "instance-refused":
      "Other members use this channel with another `order` or `transport`. Use the same settings in all members.",
  },
  "Members and clients": {
    "ready-timeout": "The member was not ready within `timeoutMs`. The phase names the obstacle.",
    "ready-aborted": "Your `signal` ended the wait. The phase names the obstacle.",
    "member-left": "This member has left the cluster. Call `join()` again if that was not intended.",
    "member-failed": "The disk or an algorithm of this member failed. Read the log, then restart the process.",
    "member-removed":
      "This member was removed from the cluster. Add a member with a new id, and start it with an empty folder.",
    "no-endpoint": "No member, or no engine, accepted the connection. The message has the reason for each endpoint.",
    forbidden: "The credentials are missing, or their role does not allow this. Check the token and the file of roles.",
    "client-refused":
      "The server closed the connection of this client for good. The message has the reason; connect again once it is fixed.",
    "client-closed": "You closed this client. Connect again to continue.",
  },
  "Changing the members": {
    "change-under-way": "Another change of the member list is in progress. Wait for `settled()`, then retry.",
    "last-voter": "The change would leave the cluster without a voter. Add or promote a member first.",
  },
} as const;

/** The caller must act: an argument, an option, a file or a command is wrong. Nothing was done. */
const usage = {
  "Calls of members and clients": {
    "bad-option": "An option has a wrong value or is unknown. Correct it; the message names the expected value.",
    "bad-name": "The name is empty, too long or reserved. Choose another name.",
    "bad-key": "The key of a map is not a valid text, or a key file is unusable. The message names the expected value.",
    "bad-value": "A value, state or result is not plain JSON data or bytes. Convert it first.",
    "too-large": "A value, transaction or result exceeds its limit. Store it elsewhere, and share a reference.",
    "bad-payload": "The payload of a message is not plain JSON data. Convert it first.",
    "payload-too-large": "The payload of a message or the state of a channel is too large. Send it in parts.",
    "bad-operation": "The operation is not valid here, such as more permits than the semaphore has. Correct the call.",
    "bad-token": "A fencing token is not a natural number. Pass `grant.token`.",
    "stale-token": "`guard()` has seen a higher token. Reject the write: its sender has lost the lock.",
    "other-setting":
      "The name is in use with other settings, such as another capacity or order. Use the same settings everywhere.",
    "already-campaigning": "This process already campaigns in this election. Call `lead()` once.",
    "transaction-over": "The transaction was used after its function returned. Await every call inside the function.",
    "unknown-machine": "This member has not defined the state machine. Call `replicated()` with its definition first.",
    "state-in-use": "The channel already has a reader with a state in this process. Use that reader.",
    "state-needs-order": 'A reader with a state needs the order "total" or "causal-total". Set it on the channel.',
    "no-multicast": 'A channel with `transport: "udp"` needs the option `multicast` of `join()`. Set it, or use TCP.',
    "bad-multicast": "An option of `multicast` is wrong. The message names the expected value.",
    "unknown-member": "No member has this id, or it does not vote. List the members for valid ids.",
    "member-exists":
      "The id or the address is taken, or the id belonged to a removed member. Choose another id or address.",
    "unknown-node": "No node or member has this id. The message lists the known ids.",
    "registry-taken": "The registry of metrics already has a metric of this name. Use one registry per member.",
    "session-too-long":
      "`sessionMs` exceeds the maximum of the ZooKeeper servers. Lower it, or raise `maxSessionTimeout`.",
    "no-library": "A package that this engine needs is not installed. Install it; the message names it.",
    "no-websocket": "This runtime has no global `WebSocket`. Import `connect` from `coterie` instead.",
    "not-running": "The node has not started, or has stopped. Call it only while it runs.",
    "bad-host": "An SRV record does not name a member. Name hosts such as `coterie-2.coterie`.",
  },
  "Configuration, keys, journals and snapshots": {
    "bad-config": "The config file is missing or wrong. The message lists every problem with its field.",
    "bad-limits": "`limits.maxFrameBytes` is too small. Raise it.",
    "bad-roles": "The file of roles is not valid. The message names the field.",
    "bad-certificate": "A certificate or its key is unusable. Make new ones with `coterie cert --renew`.",
    "wrong-authority": "The key of the certificate authority cannot sign here. Use an elliptic-curve key.",
    "half-an-authority": "Only one of `ca.pem` and `ca.key` exists. Restore the other, or choose another folder.",
    "no-authority": "`--renew` needs `ca.pem` and `ca.key`. Name the folder that has them.",
    "no-certificate": "The file to renew is not a certificate. Pass `--host` with the names.",
    "already-there": "The certificate exists. Use `--renew` to replace it.",
    "no-keys": "The protocol signs messages, and keys are missing. Configure `keys`.",
    "no-data-directory": "The protocol keeps a journal and has no folder. Set `dataDir` or `--data`.",
    "no-journal": "The protocol keeps a journal, and the host has none. Pass one to the host.",
    "journal-closed": "The journal is closed. Open it again.",
    "journal-version": "Another release wrote the journal. Run that release.",
    "bad-slot": "The name of a journal slot is empty or too long. Choose another name.",
    "slot-taken": "The slot of the journal is in use. Open each slot once.",
    "too-many-slots": "The journal has no room for another slot. Use fewer slots.",
    "folder-in-use": "The folder is not empty. Name another folder, or move its content away.",
    "cannot-replace": "The given folders cannot replace the lost one. The message names the missing part.",
    "cannot-save": "A given folder does not belong to a member of `join()`. Name the `dataDir` of stopped members.",
    "bad-snapshot": "The file is not a complete snapshot. Use another copy.",
    "cannot-read": "A file cannot be read. Check its path and permissions.",
    "cannot-write": "The output file cannot be created. Check its path and permissions.",
  },
  "HTTP, admin pages and the studio": {
    "bad-request": "A field of the request is wrong. The message names it; see `/openapi.json`.",
    "bad-command": "The body or the command is wrong. The message names the expected value.",
    "body-too-long": "The body of the request is too long. Send a shorter one.",
    "unknown-session": "The session has ended or never existed. Open a new one.",
    "bad-faults": "The faults to inject are wrong. The message names the field.",
    "bad-act": "The studio cannot do this now, such as kill a node that has exited. Look at the state of the node.",
    refused: "The member rejected the request. The message has its reason.",
  },
  "Command line": {
    "bad-argument": "An argument or option is wrong. The message names the expected value; see `--help`.",
    "port-taken": "Another program uses the port. Stop it, or choose another with `--port`.",
    "no-process-groups": "`coterie lock` and `coterie elect` do not run on Windows. Use `join()` or `connect()` there.",
    "unknown-protocol": "No protocol has this name. The message suggests or lists names; see `coterie protocols`.",
    "unknown-variant": "The protocol has no such variant. See `coterie protocols NAME`.",
    "bad-folder": "The folder of the campaign is unusable or has other results. Name another with `--out`.",
    "bad-campaign": "The campaign file is wrong. The message names the field.",
    "bad-campaign-word": "A field of an experiment is wrong or unknown. Use the names of the command-line options.",
    "bad-scenario": "The scenario file is wrong. The message names line, column and field.",
    "bad-trace": "The file is not a trace, or lacks entries. Record it again.",
    "bad-selection": "The chosen part of the trace does not exist. The message lists valid values.",
    "bad-history": "The history is not well-formed. The message names the line.",
    "bad-edn": "The history is not valid EDN. The message names line and column.",
    "unknown-model": "There is no such model. The message lists the models.",
    "bad-limit": "A limit of the search is not a number above 0. Correct it.",
    "bad-proof": "The proof file is not valid, or its keys differ from yours. Request a new one.",
  },
  "Simulator, checker and your own protocols": {
    "bad-behaviour": "A Byzantine behavior is unknown. The message lists the behaviors.",
    "bad-quorum": "The number of nodes or a quorum is not valid. Correct it.",
    "bad-voting-sets": "Voting sets of this kind do not exist for this number of nodes. Choose another construction.",
    "bad-partition": "The network partition is not valid. The message names the expected value.",
    "bad-rate": "The clock rate is not a number above 0. Correct it.",
    "bad-fate": "The fate of the journal in a crash is not valid. The message names the expected value.",
    "unknown-property": "The protocol has no such property. The message lists its properties.",
    "no-faults": "A search for the fewest faults needs faults. Allow crashes, recoveries, losses or duplications.",
    "no-handler": "The protocol has no handler for this message, command or timer. Add one.",
    "not-plain": "State, messages and records must be plain data. The message names the place and a replacement.",
    "no-wire-form": "The shape of a message cannot be encoded. The message says why.",
    malformed: "Received bytes do not match the declared shape. The connection is closed; check versions.",
    "used-request": "The id of a request was used before. Use a new id.",
    "in-step": "The simulation was changed from inside a handler. Change it between steps.",
    begun: "The simulation has already run. Load the snapshot first.",
    "other-nodes": "The snapshot has other nodes than the simulation. Use the same nodes.",
    "node-down": "The node has crashed. Restart it first.",
    "node-up": "The node is already running. Crash it first.",
    "node-paused": "The node is already paused. Resume it first.",
    "node-running": "The node is not paused. Pause it first.",
    "no-rest": "The run does not become idle. Give it an end, such as `until`.",
    "too-many-pending": "Too many messages and timers are pending. Use fewer nodes.",
  },
  "Tests in virtual time": {
    "already-running": "The member or client is running. Call `crash()` or `kill()` first.",
    "world-is-running": "Another `run()` of this world has not finished. Await it.",
    "world-at-rest":
      "The test waits for something outside the world, such as real I/O. Keep everything that it awaits inside the world.",
    "world-too-long": "The test did not finish within the limit of virtual time. Fix the wait, or raise `limitMs`.",
    "world-stands-still": "Events repeat without any time between them. Find the loop that does not wait.",
  },
} as const;

/** A disk, socket or process failed. The call may work later. */
const environment = {
  "Journals and disks": {
    "journal-in-use": "Another process uses the journal. Stop it, or name another folder.",
    "journal-full": "The journal has reached its maximum size. Free space or raise the limit, then restart.",
    "journal-path": "The path of the journal is too long for a socket. Choose a shorter path.",
    "damaged-journal": "The journal cannot be read. Treat the folder as lost: see recovery.",
    "foreign-journal": "The journal belongs to another node. Name a folder of its own for each member.",
    "other-journal": "The journal belongs to another protocol or version. Name another folder, or run that version.",
    "wrong-members": "The journal knows other members than the list. Start with the list in the journal: see journals.",
    "member-removed": "The journal belongs to a removed member. Add a member with a new id and an empty folder.",
    "cannot-make-journal": "The folder of the journal cannot be created. Check the path, permissions and disk.",
    "cannot-open-journal": "The journal cannot be opened. Check the path, permissions and disk.",
    "cannot-read-journal": "The journal cannot be read. Check the disk.",
    "cannot-write-journal": "A write to the journal failed, and the member stops. Check the disk, then restart.",
    "slow-disk": "The disk is slower than the load, and the member stops. Use a faster disk or lower the load.",
    "undefined-machine":
      "Too many commands wait for a state machine that this member has not defined. Define it right after `join()`.",
  },
  "Network and servers": {
    "cannot-listen": "The address cannot be bound. Free the port or choose another address.",
    "cannot-discover": "DNS did not name all members in time. Check the SRV records.",
    "engine-unavailable": "The server behind the engine does not answer or rejected the call. Check the server.",
    "no-answer": "A member does not answer. Check that it runs and that the address is right.",
    refused: "The member rejected the request at this moment. The message has its reason.",
    "too-many-instances":
      "This member uses too many elections or channels. Close some, or raise `limits.maxInstances`.",
    "too-many-sessions": "Too many programs have sessions at this member. Use another member.",
    "too-many-watches": "Too many watches are open at this member. Use another member.",
    "too-many-bodies": "Too many large requests are in progress. Retry later.",
    stopped: "The node or the run was stopped before it finished. Start it again.",
  },
  "Files and values": {
    "bad-value": "Another program wrote a value that cannot be read. Write it again through Coterie.",
    "cannot-read": "A certificate, key or file of roles cannot be read. Check its path and permissions.",
    "cannot-write": "A certificate or key cannot be written. Check the path, permissions and disk.",
    "no-certificates": "The package `@peculiar/x509` is not installed. Install it to make certificates.",
  },
  "Command line": {
    "nobody-alive": "No member answers. Start the members, or give each an admin address.",
    "no-leader": "No running member knows a leader. Start a majority of the members.",
    "no-agreement": "The members name different leaders. Wait, then look at the links between them.",
    unreachable: "No cluster answers at this address. Start it, or correct `--admin`.",
    "not-ready": "The local cluster did not start in time. The log of the member says why.",
    problems: "`coterie doctor` found problems. Follow the advice below each.",
    "cannot-record": "The recording cannot be written further. Free disk space.",
    "no-renderer": "The package `@resvg/resvg-js` is not installed. Install it, or choose `--svg`.",
    "no-supervisor": "The process that supervises the command cannot be started. Check limits on processes and files.",
    "supervisor-ended":
      "The process that supervises the command ended, so the command was killed. Check who killed it.",
    "different-clocks": "Processes read different monotonic clocks. Run them in one time namespace.",
    "out-of-memory": "The search ran out of memory. Set a bound, such as `--max-states`.",
    "thread-ended": "A worker thread ended unexpectedly. Run the command again.",
    failed: "The error has no code of its own. The system wrote the message.",
    "no-benchmarks": "The benchmarks are not built. Run `npm run build` in a checkout.",
    "benchmark-failed": "A benchmark failed. Its output says why.",
  },
} as const;

/** An algorithm is wrong, or a check has found a violation. The run must stop here. */
const invariant = {
  "Your own protocols": {
    "handler-failed": "A handler threw. The message names the handler; fix it.",
    "not-repeatable": "A handler gave two results for the same input. Use `ctx.choose` for chance and timers for time.",
    "state-changed": "A state was changed outside its handler. Keep no references to it.",
    "endless-step": "One step has too many effects. Look for a loop in the handler.",
    "endless-wires": "Parts of an assembly send events to each other without end. Remove the cycle.",
    "two-wires": "An event of a part has two wires. Keep one.",
    "layer-refused": "A multicast layer sent more than the layer below has room for. Send less in the upper layer.",
    "bad-message": "A message does not match its declared shape. Correct the message or the shape.",
    "bad-command": "A command does not match its declared shape. Correct the command or the shape.",
    "bad-record": "A journal record does not match its declared shape. Correct the record or the shape.",
    "bad-reply": "A reply does not match its declared shape. Correct the reply or the shape.",
    "bad-timer": "The duration of a timer is not valid. The message names the expected value.",
    "no-choice": "`ctx.choose` was given no options. Check for an empty list first.",
    "unknown-receiver": "A message is addressed to a node that does not exist. Send to `ctx.peers`.",
    "unknown-request": "A reply belongs to no request of this node. Reply to open requests only.",
    "answered-twice": "A request has two replies. Reply once.",
    "bad-compaction": "Journal records of several slots were replaced together. Replace one slot at a time.",
    "no-replay": "The protocol has a journal and no handler that replays it. Add `replay`.",
    "bad-signing": "A signature does not match its value or its signer. Sign with `ctx`.",
    "large-record": "A journal record is too large. Split it.",
    "bad-time": "The time of an event is not a number. Check the durations in the test.",
    "changes-state": "An operation that only observes changed the state of its model. Fix the model.",
  },
  "Defects of Coterie": {
    "lost-path": "The checker cannot repeat a run that it found. Report it, with the command.",
    "no-way": "The checker found contradictory states. Report it, with the command.",
    "unknown-history": "A property asks for a history that is not kept. Report it, with the command.",
    "not-the-cut": "A member entered a view without all its messages. Report it, with the logs.",
    "window-exceeded": "A channel sent more messages than its window. Report it, with the logs.",
    "bad-snapshot": "A snapshot of the log is not complete. Report it, with the logs.",
  },
} as const;

export const errorCodes = {
  CoordinationError: coordination,
  UsageError: usage,
  EnvironmentError: environment,
  InvariantViolation: invariant,
} as const;

type Keys<T> = T extends unknown ? keyof T & string : never;
export type CoordinationCode = Keys<(typeof coordination)[keyof typeof coordination]>;

/** The `phase` of a CoordinationError: what is known about the outcome. */
export const phases = {
  "never-acquired": "Nothing was acquired, and no wait remains. Retry at any time.",
  lost: "You held it, and no longer do. Stop the work that relies on it.",
  released: "You gave it back yourself. Nothing to do.",
  "never-sent": "Nothing took effect, and nothing will. Retry at any time.",
  uncertain:
    "It took effect, will take effect soon, or never will. Read the state before you retry, or make the retry harmless.",
  missed: "It took effect, and this reader did not get it. Read the state again.",
  "no-majority": "The member does not reach a majority. Start other members, or repair the links.",
  "no-log-leader": "A majority is reachable, and its log has no leader yet. Wait.",
} as const;

export type Phase = keyof typeof phases;

/** The `code` of an HTTP response, or of the final message on a WebSocket, that is not the code of an error above. */
export const pageCodes = {
  absent: "The key does not exist (404). Nothing to do.",
  changed: "The key was not last written at `ifRevision` (409). Read it again, then retry.",
  "no-page": "There is no such page (404). See `/openapi.json`.",
  "bad-message": "The client sent a message that is not part of the protocol. Update the client.",
  "bad-version": "The client speaks another version of the client protocol. Use the release of the member.",
  moved: "The client has opened another connection. Use that one.",
  "role-changed": "The role of the client has changed. Connect again.",
  "no-leader": "The member knows no leader of the log. Try another member.",
  unavailable: "The member cannot serve clients now. Try another member.",
  "no-hello": "The connection did not introduce itself in time. Send the hello first.",
  "too-many": "The client follows too many names. Use fewer.",
  "too-many-clients": "The member serves its maximum of clients. Try another member.",
  silent: "The member has received nothing from the client for too long. Connect again.",
} as const;

/** Why two members have no link, as `coterie status` and `coterie doctor` print it. */
export const linkRefusals = {
  "wrong-version": "The releases speak different wire versions. Upgrade the older member.",
  "wrong-cluster": "The members belong to clusters of different names. Correct `cluster` or the address.",
  "wrong-protocol": "The members run different protocols or options. Use the same config everywhere.",
  "wrong-node": "Another node answers at this address. Correct the addresses.",
  "unknown-node": "The node is not on the list of members. Add it first.",
  "duplicate-id": "Another running node has the same id. Stop one of them.",
  "wrong-certificate": "The certificate does not belong to this member. Make one with `coterie cert`.",
  malformed: "Received bytes are not part of the protocol. Check what listens at the address.",
  "wrong-members": "The journals know different members. See journals.",
  "lost-journal": "A member lost its journal, and others remember it. Replace the member: see recovery.",
  "not-founded":
    "A member was started as one of an existing cluster that is not founded yet. Start the founders first.",
  removed: "One of them was removed from the cluster. Stop it.",
  unknown: "A newer release gave a reason that this one does not know. Upgrade this member.",
} as const satisfies Record<Refusal | "unknown", string>;
