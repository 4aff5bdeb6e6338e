import { basicsSuite } from './basics.suite.ts';

basicsSuite();
