/**
 * Questions and the texts that answer them, without a content word in common: what a search by meaning is for, and a
 * literal search cannot find. Written by hand before anything was measured, and not changed after: a pair that a model
 * misses says something about the model. test/load-tests/paraphrases.test.ts holds them to their rule.
 */
export interface ParaphrasePair {
  readonly topic: string;
  readonly query: string;
  readonly text: string;
}

const pairs = (topic: string, ...each: readonly (readonly [query: string, text: string])[]) =>
  each.map(([query, text]): ParaphrasePair => ({ topic, query, text }));

export const paraphrasePairs: readonly ParaphrasePair[] = [
  ...pairs(
    'support',
    [
      "I can't sign in because I forgot my credentials",
      'Reset your password from the login page if you no longer remember it.',
    ],
    ['how do I get my money back', 'Our refund policy allows returns within thirty days of purchase.'],
    [
      'stop charging my card every month',
      'You can cancel your subscription at any time from the billing page.',
    ],
    [
      'the parcel never showed up',
      'If your package has not arrived after ten days, contact the courier and we will send a replacement.',
    ],
    [
      'the app keeps crashing on my phone',
      'Mobile users report that the program closes unexpectedly right after launch.',
    ],
    [
      'change where my order is sent',
      'Customers may edit the shipping address until the goods leave the warehouse.',
    ],
    [
      'talk to a real person',
      'Live agents are available by chat or telephone on weekdays from nine to five.',
    ],
    [
      'I was billed twice',
      'We are sorry about the duplicate charge on your credit card; it has been reversed.',
    ],
    ['make the letters bigger so I can read them', 'Increase the font size under accessibility settings.'],
  ),
  ...pairs(
    'technical',
    ['the server ran out of memory', 'The kernel killed the process because RAM was exhausted.'],
    [
      'too many requests error',
      'Each client is throttled to one hundred calls per second; exceeding this rate limit returns status 429.',
    ],
    ['automatic memory management', 'A garbage collector frees objects that are no longer referenced.'],
    ['undo the last change to the code', 'Run git revert to go back to the previous commit.'],
    ['website is very slow', 'High latency was caused by page load times of over eight seconds.'],
    ['copies of data in case a disk dies', 'Nightly backups protect against hardware failure.'],
    ['hide secrets while they travel over the network', 'All traffic is encrypted with TLS.'],
    [
      'two threads wait for each other forever',
      'A deadlock occurs when neither task can proceed since both hold a lock.',
    ],
    ['find the bug in my program', 'Use a debugger to step through the software and locate the defect.'],
    ['speed up database lookups', 'Adding an index makes SQL queries much faster.'],
    [
      'attackers guessed a weak passphrase',
      'The account was hacked by brute force since its password was too simple.',
    ],
  ),
  ...pairs(
    'cooking',
    [
      'how to make pasta topping',
      'Simmer the tomato sauce with garlic and basil, then pour it over spaghetti.',
    ],
    ['bread does not rise', 'Old yeast is the usual reason why dough stays flat in the oven.'],
    ['meal without any meat', 'This vegetarian dish combines chickpeas, spinach and rice.'],
    [
      'dessert with chocolate',
      'Bake the brownies until the cocoa batter is set and let the sweet cake cool.',
    ],
    [
      'keep vegetables fresh for longer',
      'Store lettuce and carrots in the refrigerator wrapped in a damp cloth.',
    ],
    ['my soup is too salty', 'Add a raw potato or more water to the broth to balance excess sodium.'],
    ['quick breakfast idea', 'Scramble two eggs and serve them on toast in the morning.'],
    ['hot drink that wakes me up', 'A cup of strong coffee contains plenty of caffeine.'],
  ),
  ...pairs(
    'travel',
    [
      'cheap place to sleep abroad',
      'Budget hostels in foreign cities offer dormitory beds for ten euros a night.',
    ],
    ['my plane was late', 'The flight was delayed by three hours because of fog at the airport.'],
    ['lost suitcase', 'Report missing baggage at the airline desk in the arrivals hall.'],
    [
      'do I need papers to enter the country',
      'Visitors must show a valid passport and a visa at the border.',
    ],
    [
      'getting from the airport to downtown',
      'The express train connects the terminal with the city centre in twenty minutes.',
    ],
    [
      'vacation by the sea with kids',
      'This beach resort on the coast is ideal for families with small children.',
    ],
    ['rent a vehicle for the weekend', 'Car hire desks are open on Saturday and Sunday.'],
    [
      'trip through the mountains on foot',
      'The hiking trail crosses several alpine passes and takes five days.',
    ],
  ),
  ...pairs(
    'law',
    ['can my landlord throw me out', 'A tenant may only be evicted after written notice and a court order.'],
    [
      'who gets the house when somebody dies',
      'Property passes to the heirs named in the will of the deceased.',
    ],
    ['ending a marriage', 'Either spouse may file for divorce after one year of separation.'],
    ['employer fired me without reason', 'Wrongful dismissal entitles a worker to compensation.'],
    ['downloading songs without permission', 'Pirating music infringes the copyright of the artist.'],
    ['the judge put him behind bars', 'The defendant was sentenced to four years in prison.'],
    [
      'what companies may do with personal information',
      'Privacy rules restrict how firms process user data.',
    ],
    [
      'binding agreement between two parties',
      'A contract is formed when an offer is accepted by both sides.',
    ],
  ),
  ...pairs(
    'health',
    ['medicine against bacteria', 'The patient was prescribed antibiotics for the infection.'],
    ["I can't fall asleep at night", 'Insomnia can be treated by avoiding screens before bedtime.'],
    ['my head hurts', 'Migraine pain is often relieved by rest in a dark room and aspirin.'],
    ['how to lose weight', 'Eating fewer calories and regular exercise help obese people become slimmer.'],
    ['shots for infants', 'Babies should receive their first vaccines at two months.'],
    ['broken leg', 'She fractured her shin bone while skiing and wore a cast for six weeks.'],
    ['high temperature and cough', 'Fever together with a sore throat may be a symptom of flu.'],
    ['feeling sad all the time', 'Depression is a mental illness that causes a persistent low mood.'],
    ['doctor who looks after teeth', 'Visit your dentist twice a year.'],
  ),
  ...pairs(
    'money',
    ['borrow cash to buy a home', 'The bank granted them a mortgage for their first house.'],
    ['prices keep going up', 'Inflation has eroded the purchasing power of wages.'],
    ['stocks fell sharply', 'Shares plunged on Wall Street as the market crashed.'],
    ['putting money aside for old age', 'Workers contribute to a pension fund until retirement.'],
    ['the firm went bust', 'The company declared bankruptcy after years of losses.'],
    [
      'how much the government takes from my salary',
      'Income tax is deducted from wages at a rate of twenty percent.',
    ],
  ),
  ...pairs(
    'everyday',
    ['a young dog damaged furniture', 'The puppy chewed the leg of the chair.'],
    ['water drips from the tap', 'The kitchen faucet has been leaking since yesterday.'],
    ['it will rain tomorrow', 'The weather forecast predicts showers and wet conditions for Tuesday.'],
    ['purchase a used automobile', 'He is going to buy a second-hand car.'],
    ['my neighbours are too loud', 'The people next door play noisy music until late in the evening.'],
    ['what to give a child on her birthday', 'Toys and picture books make good presents for a little girl.'],
    ['the lights went out', 'A power failure left the whole street in the dark.'],
    ['repair a bike', 'Patch the punctured bicycle tyre and oil the chain to fix it.'],
    ['keep plants alive', 'Flowers in pots need watering and plenty of sunshine to survive.'],
  ),
  ...pairs(
    'science and history',
    [
      'how do vegetation and trees make food',
      'Photosynthesis converts sunlight into chemical energy in plants.',
    ],
    ['pictures of outer space', 'The telescope captured images of distant galaxies and stars.'],
    ['when did the Nazi regime fall', 'World War II ended in 1945 with the surrender of Germany.'],
    [
      'the planet is getting warmer',
      'Greenhouse gases are the main cause of climate change and rising global temperatures.',
    ],
    ['creatures that lived millions of years ago', 'Fossils of dinosaurs were discovered in the desert.'],
    ['first man on the moon', 'Neil Armstrong walked across the lunar surface in 1969.'],
    ['why the ground shakes', 'Earthquakes happen when tectonic plates slip past one another.'],
  ),
  ...pairs(
    'sport, school and work',
    [
      'our side won the match',
      "The home team beat their opponents three to one in yesterday's football game.",
    ],
    ['looking for a job', 'Unemployed engineer seeks a full-time position.'],
    ['pupils did badly in the exam', 'Many students failed the final test.'],
    ['boss gave me a raise', 'My manager increased my pay by five percent.'],
    ['conference call moved to a later date', 'The meeting has been postponed until next week.'],
    [
      'learn to speak another language',
      'Evening classes in Spanish and French for beginners start in September.',
    ],
    ['fastest runner', 'The sprinter set a new world record in the hundred metres.'],
  ),
];
