/** One connection between two servers as bytes, in order, both ways; whatever carries it. */
export interface ByteLink {
  /** Takes bytes, which are the link's from here on. False: no more before `drained`. */
  write(bytes: Uint8Array): boolean;
  /** Nothing more is received until `resume`. */
  pause(): void;
  resume(): void;
  /** Sends what was written, then closes. */
  end(): void;
  /** Closes at once, whatever was written. */
  destroy(): void;
  /** Says who hears of it; called once, before anything can have come. */
  listen(listener: LinkListener): void;
  /** Calls `run` when this turn of the thread ends; where it is missing, the real thread's turn does. */
  atEndOfTurn?(run: () => void): void;
}

export interface LinkListener {
  /** The bytes are the listener's until it returns. */
  received(bytes: Uint8Array): void;
  drained(): void;
  /** Once, as the last. */
  closed(): void;
}
