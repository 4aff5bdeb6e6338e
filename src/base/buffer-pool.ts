/**
 * Keeps Node's pool of small buffers small in this thread: nothing of 4 KB or more lies in it, which was Node's own default until
 * 24 made the pool 64 KB. Messages between threads move a large body's whole `ArrayBuffer`; one of the pool can't be moved, and
 * trying to ends the thread. Whoever moves buffers imports this.
 */
Buffer.poolSize = 8 * 1024;
