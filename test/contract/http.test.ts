import { describe } from 'node:test';
import { httpSuite } from './http.suite.ts';

// Beside each other: each suite waits some ten seconds for connections that are to be cut.
describe('the door of HTTP', { concurrency: true }, () => {
  httpSuite('uws');
  httpSuite('node');
});
