import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { operationList } from '../../../protocol/operations.ts';
import { auditEvents } from '../../../src/front/audit.ts';

describe('the audit log', () => {
  it('has an event for each operation that changes accounts, keys, tenants or bills', () => {
    const audited = operationList.filter(
      ({ tag, methods }) =>
        ['accounts', 'keys', 'tenants', 'billing'].includes(tag) &&
        methods.some((method) => method !== 'GET'),
    );

    assert.deepEqual(Object.keys(auditEvents).toSorted(), audited.map(({ name }) => name).toSorted());
  });

  it('names each event once, in words', () => {
    const events = Object.values(auditEvents);

    assert.equal(new Set(events).size, events.length);
    for (const event of events) assert.match(event, /^[a-z-]+\.[a-z-]+$/);
  });
});
