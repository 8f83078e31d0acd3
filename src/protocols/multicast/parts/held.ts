/** What a node's picture shows of its hold-back queue: enough to read, however long the queue is. */
const MAX_SHOWN = 16;

export const heldIds = <Message>(queue: readonly Message[], idOf: (message: Message) => string): string[] =>
  queue.slice(0, MAX_SHOWN).map(idOf);
