import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { blamed, rethrow } from '../../../../actors/search/sql/blamed.ts';
import { SqlError } from '../../../../actors/sql/sql-error.ts';
import { ApiError } from '../../../../protocol/errors.ts';

describe('A refusal while a statement judges texts', () => {
  it('is the statement’s fault where its pattern is wrong, at the place of the pattern', () => {
    const refused = new ApiError('invalid', 'q: a regex is wrong', { fields: { q: 'a regex is wrong' } });

    assert.throws(
      () => blamed(7, () => rethrow(refused)),
      (error) => error instanceof SqlError && error.at === 7 && error.message === 'a regex is wrong',
    );
  });

  it('stays what it is where the server has no room: the same statement may be sent again', () => {
    const full = new ApiError('rate_limited', 'too many regexes that are slow to judge are running', {
      retryAfter: 1,
    });

    assert.throws(
      () => blamed(7, () => rethrow(full)),
      (error) => error === full,
    );
  });
});
