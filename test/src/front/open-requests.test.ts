import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { OpenRequests } from '../../../src/front/open-requests.ts';

const tooMany = (error: unknown) => error instanceof ApiError && error.code === 'rate_limited';
const { openRequestsMax, openRequestsOfNetworkMax } = limits;

test('one network takes only so many places, on this machine too, and leaves the others theirs', () => {
  for (const address of ['127.0.0.1', '192.0.2.1', '2001:db8::1']) {
    const requests = new OpenRequests();
    const places = Array.from({ length: openRequestsOfNetworkMax }, () => requests.enter(address));

    assert.throws(() => requests.enter(address), tooMany);
    if (address.includes(':')) assert.throws(() => requests.enter('2001:db8::2'), tooMany);
    requests.enter('198.51.100.1').leave();
    places[0]?.leave();
    requests.enter(address);
    assert.throws(() => requests.enter(address), tooMany);
  }
});

test('all networks together take only so many places, and give all of them back', () => {
  const requests = new OpenRequests();
  const places = Array.from({ length: openRequestsMax }, (_, index) =>
    requests.enter(`10.0.${index >> 8}.${index & 255}`),
  );

  assert.throws(() => requests.enter('192.0.2.1'), tooMany);
  for (const place of places) place.leave();

  assert.equal(requests.underWay, 0);
  requests.enter('192.0.2.1').leave();
  assert.equal(requests.underWay, 0);
});
