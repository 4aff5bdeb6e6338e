import { describe } from 'node:test';
import { basicsSuite } from './basics.suite.ts';

// Beside each other: much of the time goes into waiting for groups of the log.
describe('end to end', { concurrency: true }, () => {
  basicsSuite('uws');
  basicsSuite('node');
});
