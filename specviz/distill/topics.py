"""What the training prompts are about: the words that `prompts.py` puts into its templates.

Every list is a block of items between semicolons. An item is written as it stands inside a sentence, so lower-case
unless it is a name. `FIELDS` names the lists for the templates.
"""

from __future__ import annotations

from collections.abc import Mapping


def _items(block: str) -> tuple[str, ...]:
    return tuple(" ".join(item.split()) for item in block.split(";") if item.strip())


def _paragraphs(block: str) -> tuple[str, ...]:
    return tuple(" ".join(paragraph.split()) for paragraph in block.split("\n\n"))


#: Things, to "tell me about", "explain", "define".
NOUNS = _items("""
photosynthesis; gravity; the water cycle; plate tectonics; evolution by natural selection; DNA; black holes; the
ozone layer; antibiotics; the periodic table; chemical bonds; acids and bases; friction; inertia; the speed of
light; sound waves; magnetism; static electricity; electric current; nuclear fusion; radioactivity; the greenhouse
effect; the carbon cycle; the nitrogen cycle; osmosis; enzymes; the immune system; red blood cells; the human heart;
the nervous system; the lungs; the kidneys; digestion; muscles and tendons; bone marrow; hormones; insulin; stem
cells; genes and chromosomes; dominant and recessive genes; mitosis; bacteria and viruses; fungi; lichens; mosses;
ferns; pollination; seed dispersal; food chains; symbiosis; camouflage; bird migration; hibernation; metamorphosis;
echolocation; whale songs; octopus intelligence; ant colonies; termite mounds; bee communication; spider silk; coral
bleaching; mangroves; rainforests; deserts; tundra; wetlands; glaciers; icebergs; hot springs; limestone
caves; river deltas; ocean currents; the jet stream; monsoons; hurricanes; tornadoes; fog; snowflakes; the northern
lights; solar flares; sunspots; the phases of the moon; meteor showers; comets; asteroids; the rings of Saturn; the
moons of Jupiter; the Milky Way; neutron stars; the big bang; dark matter; exoplanets; space telescopes; the
international space station; satellites; rockets; orbital mechanics; quantum mechanics; special relativity; entropy;
the laws of thermodynamics; Newton's third law; absolute zero; superconductors; lasers; optical fibres; lenses;
mirrors; prisms; polarised light; the electromagnetic spectrum; radar; sonar; X-rays; ultrasound scans; microscopes;
batteries; solar panels; wind turbines; hydroelectric dams; tidal power; geothermal energy; nuclear reactors;
electric motors; diesel engines; gears and pulleys; levers; hydraulics; suspension bridges; skyscrapers; concrete;
steel; glass making; ceramics; plastics; recycling; composting; sewage treatment; 3D printing; semiconductors;
transistors; integrated circuits; computer memory; hard drives; operating systems; file systems; the internet
protocol; the domain name system; routers; Wi-Fi; Bluetooth; GPS; encryption; public keys; digital signatures;
passwords and hashing; phishing; computer viruses; firewalls; cloud computing; virtual machines; databases; SQL
joins; version control; open source software; compilers; recursion; sorting algorithms; binary search; hash tables;
linked lists; binary trees; graph theory; big O notation; machine learning; neural networks; decision trees;
overfitting; search engines; chatbots; computer vision; speech recognition; recommendation systems; blockchains; QR
codes; barcodes; prime numbers; fractions; percentages; the Pythagorean theorem; pi; the Fibonacci sequence;
probability; standard deviation; the mean and the median; correlation and causation; Bayes' theorem; logarithms;
derivatives; integrals; matrices; complex numbers; geometry; set theory; game theory; the prisoner's dilemma; supply
and demand; inflation; interest rates; compound interest; mortgages; credit scores; the stock market; bonds; index
funds; pensions; insurance; taxes; value added tax; tariffs; exchange rates; central banks; recessions;
unemployment; gross domestic product; opportunity cost; monopolies; trade unions; minimum wages; start-ups; venture
capital; marketing; supply chains; franchising; the gig economy; the Roman Empire; ancient Egypt; the Maya
civilisation; the Inca road system; the Silk Road; the Vikings; the Mongol Empire; the Ottoman Empire; the Black
Death; the Magna Carta; the Renaissance; the printing press; the Reformation; the age of exploration; the scientific
revolution; the Enlightenment; the French Revolution; the American Civil War; the Industrial Revolution; the
abolition of slavery; women's suffrage; the Russian Revolution; the First World War; the Great Depression; the
Second World War; the Cold War; the Berlin Wall; the space race; decolonisation; apartheid; the civil rights
movement; the European Union; the United Nations; the Olympic Games; democracy; constitutions; the separation of
powers; juries; copyright; patents; human rights; federalism; elections; diplomacy; impressionism; cubism;
surrealism; baroque music; jazz; the blues; opera; ballet; haiku; sonnets; Greek tragedy; Shakespeare's comedies;
the novel; science fiction; satire; metaphors; film editing; animation; photography; perspective in painting;
watercolour; pottery; calligraphy; origami; typography; Gothic architecture; Islamic geometric patterns; stained
glass; musical scales; rhythm; harmony; the piano; the violin; vitamins; protein; fibre; cholesterol; calories;
dehydration; caffeine; sleep cycles; dreams; stress; meditation; habit formation; procrastination; memory;
attention; optical illusions; the placebo effect; confirmation bias; emotional intelligence; body language;
allergies; asthma; diabetes; migraines; high blood pressure; the common cold; vaccines; clinical trials; first aid;
physiotherapy; sourdough; fermentation; cheese making; chocolate; olive oil; tea; coffee roasting; spices; knitting;
gardening; crop rotation; beekeeping; chess; marathon running; stoicism; utilitarianism; existentialism; the
scientific method; logic; free will; etymology; sign language; dialects; grammar; punctuation; loanwords; writing
systems; the alphabet; time zones; leap years; calendars; maps; compasses; latitude and longitude; the metric system
""")

#: How and why clauses, for "explain ..." and direct questions.
CLAUSES = _items("""
how a fridge keeps food cold; how a microwave heats food; how soap removes grease; how planes stay in the air; how
boats float; how bicycles stay upright; how a toaster works; how a vacuum flask keeps tea hot; how mirrors are made;
how paper is made; how cotton becomes cloth; how glass is recycled; how bread rises; how yoghurt is made; how wine
is made; how salt is taken from the sea; how honey is made; how popcorn pops; how eyes see colour; how ears hear;
how we taste food; how skin heals; how bones mend; how vaccines train the body; how memory fades; how babies learn
to talk; how cats land on their feet; how dogs smell so well; how birds find their way; how fish breathe; how snakes
move; how bats hunt at night; how trees drink; how cacti store water; how seeds know when to sprout; how leaves
change colour; how rainbows form; how lightning happens; how clouds form; how hail forms; how earthquakes are
measured; how mountains rise; how islands appear; how caves form; how fossils form; how diamonds form; how oil was
formed; how tides work; how waves break; how stars die; how the moon formed; how eclipses happen; how rockets steer;
how touch screens work; how a camera focuses; how noise cancelling headphones work; how e-mail travels; how a web
page loads; how search results are ranked; how passwords get stolen; how credit cards work; how banks make money;
how prices are set; how a bill becomes law; how courts decide; how votes are counted; how newspapers earn money; how
films are made; how cartoons are animated; how crosswords are written; how pianos make sound; how a guitar is tuned;
how maps flatten the globe; how ships cross a canal lock; how tunnels are dug; how lifts stay safe; how traffic
lights are timed; how roundabouts help traffic; how planes avoid each other; how vending machines know coins; how
locks work; how zips work; how pencils are made; how candles burn; how matches light; how fireworks get their
colours; why the sky is blue; why the sea is salty; why ice floats; why leaves are green; why onions make us cry;
why we yawn; why we dream; why we get hiccups; why we sneeze; why we blush; why hair goes grey; why muscles ache
after sport; why bread goes stale; why apples turn brown; why metal feels cold; why iron rusts; why balloons stick
to walls; why thunder follows lightning; why the moon changes shape; why we have seasons; why deserts are cold at
night; why cities are warmer than fields; why rivers bend; why some animals sleep all winter; why cats purr; why
flamingos are pink; why zebras have stripes; why giraffes have long necks; why bees matter; why forests matter; why
money has value; why prices rise; why countries trade; why empires fall; why languages die; why we forget names; why
music moves us; why people gamble; why habits are hard to break; why passwords should be long; why software has
bugs; why phones slow down; why planes leave trails; why golf balls have dimples; why tyres have grooves; why
bridges have gaps; why manhole covers are round; why we have leap years; why clocks change in spring
""")

#: Two things to compare.
PAIRS = _items("""
weather and climate; viruses and bacteria; mass and weight; heat and temperature; speed and velocity; atoms and
molecules; fruit and vegetables; frogs and toads; alligators and crocodiles; moths and butterflies; llamas and
alpacas; RAM and storage; HTTP and HTTPS; a compiler and an interpreter; a stack and a queue; a list and a tuple;
TCP and UDP; Java and JavaScript; a process and a thread; authentication and authorisation; a virus and a worm;
debit and credit; stocks and bonds; gross and net pay; a loan and a lease; a recession and a depression; a republic
and a monarchy; civil and criminal law; a simile and a metaphor; a novel and a novella; a symphony and a concerto;
jam and marmalade; baking soda and baking powder; stock and broth; espresso and filter coffee; ale and lager; green
tea and black tea; empathy and sympathy; a psychologist and a psychiatrist; aerobic and anaerobic exercise;
saturated and unsaturated fat; type 1 and type 2 diabetes; a star and a planet; a meteor and a meteorite; AC and DC;
LED and halogen bulbs; petrol and diesel cars; a hybrid and an electric car; a violin and a viola; prose and verse;
a hurricane and a typhoon; granite and marble; copper and brass; a mean and a median; permutations and combinations;
nature and nurture; a theory and a hypothesis; a city and a town; a bay and a gulf; a donkey and a mule
""")

CHARACTERS = _items("""
a lighthouse keeper; a retired pirate; a shy robot; a young baker; a dragon who hates fire; a tired detective; a
talking cat; a lonely astronaut; a village doctor; an old clockmaker; a girl with a wooden sword; a boy who collects
maps; a ghost who forgot its name; a night bus driver; a lost postman; a beekeeper; a librarian with a secret; a
circus juggler; a deep-sea diver; a street musician; two rival chefs; three sisters; a mountain guide; a nervous
wizard; a knight without a horse; a fox and a crow; an orphaned bear cub; an inventor's apprentice; a queen in
disguise; a fisherman's daughter; a science teacher; a taxi driver; a gardener; a train conductor; a snow owl; a
small elephant; a forgetful spy; a window cleaner; a puppet maker; a sailor; a weather reporter; a chess champion; a
painter who lost her colours; a mouse with big plans; a giant afraid of mice; a grandmother on a motorbike; a time
traveller; a new mayor; twin brothers; a homesick alien
""")
PLACES = _items("""
in a floating market; in a town without clocks; on a tiny island; in an abandoned theatre; on a night train; under
the sea; in a library with no doors; on the moon; in a desert caravan; in a snowed-in hotel; at the edge of a
forest; in a castle made of glass; on a rooftop garden; in a hospital at night; in an old mine; at a village fair;
in a submarine; in a city of bridges; in a bakery at dawn; on a pirate ship; in a museum after closing; at a bus
stop in the rain; in the year 3000; in ancient Rome; in a house that moves; in a quiet suburb; on a sheep farm; in a
lift; at an airport; in a greenhouse; on a frozen lake; in a school attic; in a valley of windmills; at the top of a
volcano; in a tiny bookshop; in a jungle village; on a space station; in a puppet theatre; in a swamp; in a railway
museum; on a long bridge; at a summer camp; in a flooded city; in a tailor's shop; in a cloud kingdom
""")
PROBLEMS = _items("""
a letter arrives forty years late; a key fits every door; the rain will not stop; nobody can tell lies any more; an
old friend returns; the last train has left; a map leads to the wrong place; all the music disappears; a storm is
coming; the lights go out; something follows them home; a bet gets out of hand; the king wants a joke; a child goes
missing; a strange egg hatches; a promise has to be broken; a wish goes wrong; the bridge is closed; a secret is
found in a coat; the moon does not rise; someone has eaten the prize cake; a mirror shows tomorrow; the dog starts
to talk; money falls from the sky; a stranger asks for shelter; a machine refuses to work; an enemy needs help; a
photograph changes; the village well runs dry; a race has no finish line; a song must not be sung; a shadow goes its
own way; the wrong suitcase is opened; the winter lasts too long; a birthday is forgotten; a treasure turns out to
be a book; a plan fails at once; the phone rings at midnight; an apology comes too late; the sea gives something
back; two people claim the same house; a tree grows overnight; a lesson is learned about patience; the hero has to
choose between two friends; a small kindness is repaid
""")
GENRES = _items("""
funny; sad; scary; romantic; mysterious; hopeful; fairy-tale; science fiction; fantasy; detective; adventure;
bedtime; ghost; historical; cosy; dramatic; magical; western; heartwarming; strange
""")

#: Lists of ..., in the plural.
LIST_THEMES = _items("""
quick breakfasts; vegetarian dinners; healthy snacks; meals for one; dishes with chickpeas; things to cook with
leftover rice; salads without lettuce; soups for winter; desserts without sugar; picnic foods; lunch box ideas;
spices every kitchen needs; kitchen tools; pantry staples; party snacks; cheap meals; drinks without alcohol; ways
to use old bread; herbs to grow indoors; house plants that need little light; vegetables to plant in spring; flowers
for shade; garden chores for autumn; ways to save water; ways to save electricity; ways to cut food waste; ways to
reduce plastic; ways to save money; side jobs for students; questions to ask a landlord; things to check before
buying a used car; things to pack for the beach; camping gear; items for a first aid kit; things to pack for a ski
trip; road trip games; games for long flights; museums worth seeing; European capitals; islands to visit; day trip
ideas; rainy day activities; weekend hobbies; indoor hobbies; outdoor activities for toddlers; crafts with
cardboard; science experiments for kids; birthday party themes; gift ideas for parents; gift ideas for a colleague;
presents under ten pounds; wedding toast tips; ice breaker questions; team building activities; interview questions;
questions to ask an employer; skills for a CV; tips for public speaking; tips for better meetings; tips for remote
work; productivity habits; morning habits; ways to fall asleep; ways to relax; stretches for office workers;
exercises without equipment; tips for new runners; sports for people with bad knees; ways to drink more water; signs
of burnout; ways to make friends in a new city; conversation starters; polite ways to say no; compliments; synonyms
for happy; synonyms for said; words that rhyme with light; strong verbs; common idioms; false friends in French;
tips for learning a language; study tips; note taking methods; essay topics; debate topics; research questions about
pollution; topics for a history podcast; blog post ideas; names for a cat; names for a puppy; names for a café; team
names; band names; character names for a fantasy story; plot twists; story settings; journal prompts; drawing
prompts; photo ideas; song themes; board games; card games; classic novels; children's books; films for a family
night; famous painters; famous scientists; women inventors; inventions of the 1800s; ancient civilisations; wonders
of nature; endangered animals; mammals that lay eggs; birds of prey; freshwater fish; dog breeds for flats;
nocturnal animals; types of clouds; types of rocks; planets by size; programming languages; beginner coding
projects; keyboard shortcuts; password rules; ways to spot a scam; phone settings to change; uses for an old laptop;
database terms; causes of inflation; renewable energy sources; jobs that involve maths; jobs for people who like
animals; questions for a doctor; questions for a first date; things to do before moving house; cleaning tasks;
spring cleaning steps; laundry mistakes; DIY tools; safety rules for a lab; rules for a book club; volunteer ideas;
fund raising ideas; small acts of kindness; new year resolutions; goals for a school year; classroom rules
""")
COUNTS = _items("3; three; 4; five; 5; 6; seven; 7; 8; ten; 10; 12; a few; some")
AUDIENCES = _items("""
for beginners; for a family of four; for students; for someone on a budget; for busy people; for older people; for
kids; for teenagers; for a small flat; that cost nothing; that most people forget; with one line each; with a short
reason for each; from easy to hard; in alphabetical order
""")

#: An e-mail about ..., or to say that ...
EMAIL_AIMS = _items("""
asking for a day off; asking for a week of leave in August; calling in sick; asking for a pay rise; resigning from a
job; accepting a job offer; turning down a job offer; following up after an interview; asking for an interview date;
applying for a summer job; asking for a reference; thanking someone for a reference; introducing myself to a new
team; saying goodbye to colleagues; moving a meeting to Thursday; cancelling a meeting; sending the agenda for a
meeting; sending meeting notes; chasing an unpaid invoice; asking for a quote; sending a quote; ordering printer
paper; complaining about a broken kettle; complaining about a late parcel; asking for a refund; returning a pair of
shoes; cancelling a subscription; cancelling a gym membership; asking about opening hours; booking a table for
eight; booking a hotel room; asking for a late check-out; reporting a lost suitcase; changing a flight; thanking a
host for dinner; inviting friends to a barbecue; inviting neighbours to a street party; declining a wedding
invitation; congratulating a friend on a new baby; congratulating a colleague on a promotion; wishing someone a
quick recovery; sending condolences; apologising for a late reply; apologising for missing a call; apologising for a
mistake in a report; asking for more time on an assignment; asking for feedback on an essay; asking a question about
homework; asking to join a research project; reporting a leaking tap; reporting a noisy neighbour; giving notice on
a flat; asking for the deposit back; asking to keep a pet; offering to sell a sofa; asking whether a bike is still
for sale; asking for a lift to the airport; offering help with a move; planning a surprise party; planning a
reunion; sharing holiday photos; asking for a recipe; recommending a book; asking for donations; thanking
volunteers; looking for volunteers; announcing a new product; announcing a price rise; announcing office closing
days; announcing a software update; explaining a delay; explaining a power cut; reminding people of a deadline;
reminding members to pay fees; asking for a password reset; reporting a bug; asking for access to a shared folder;
asking for a demo; proposing a partnership; inviting a speaker; thanking a speaker; asking for permission to use a
photo; asking for a copy of a contract; asking about a warranty; asking for a change of address; asking about school
places; excusing a child from sports; thanking a teacher; asking for a parents' evening slot; asking about swimming
lessons; booking a dentist appointment; asking for test results; renewing a library card; disputing a parking fine;
asking the council about recycling; suggesting a new bus stop
""")
RECIPIENTS = _items("""
my boss; my landlord; a client; the whole team; a colleague; my teacher; a professor; customer service; the HR
department; a friend; my neighbour; an old school friend; a supplier; the hotel; the bank; the school office; a
recruiter; the club members; my aunt; someone I have not met
""")
TONES = _items("""
friendly; formal; polite; short; warm; firm but polite; professional; casual; cheerful; apologetic; very short;
clear
""")

#: A function that ..., in either language.
FUNCTIONS = _items("""
reverses a string; checks whether a word is a palindrome; counts the vowels in a string; counts words in a sentence;
finds the longest word; capitalises each word; removes punctuation; removes duplicate items from a list; finds
duplicates in a list; sums the even numbers; returns the largest number; returns the second largest number; finds
the smallest and largest value; computes the average; computes the median; computes the mode; computes a factorial;
returns the nth Fibonacci number; checks whether a number is prime; lists the primes below n; finds the greatest
common divisor; finds the least common multiple; converts Celsius to Fahrenheit; converts miles to kilometres;
converts a number to binary; converts binary to decimal; converts a number to Roman numerals; parses Roman numerals;
checks for a leap year; returns the days between two dates; formats a date as day/month/year; computes an age from a
birthday; flattens a nested list; splits a list into chunks; rotates a list by k; merges two sorted lists; merges
two dictionaries; groups words by first letter; counts how often each letter occurs; finds the most common word;
checks whether two words are anagrams; sorts people by age; sorts words by length; filters out negative numbers;
squares every number; multiplies two matrices; transposes a matrix; checks a sudoku row; does a binary search; does
a linear search; implements bubble sort; implements quicksort; implements merge sort; implements insertion sort;
validates an e-mail address; validates a phone number; checks password strength; generates a random password;
generates a random colour; rolls two dice; shuffles a deck of cards; picks a random item; simulates a coin toss;
plays rock paper scissors; plays hangman; guesses a number; prints a multiplication table; prints a triangle of
stars; prints FizzBuzz; encodes text with a Caesar cipher; decodes Morse code; compresses a string with run lengths;
counts lines in a text; extracts numbers from a string; extracts hashtags from a post; extracts all links from a
text; shortens text with an ellipsis; turns a title into a slug; converts snake case to camel case; converts camel
case to snake case; pads a number with zeros; formats a number as currency; adds commas to a big number; calculates
a tip; calculates compound interest; calculates the body mass index; calculates the area of a circle; calculates the
distance between two points; finds the hypotenuse; solves a quadratic equation; checks whether brackets are
balanced; evaluates a simple expression; finds a missing number; finds pairs that add up to a target; moves zeros to
the end; finds the first unique character; finds common items of two lists; computes the difference of two lists;
computes a running total; finds a peak in a list; counts down from ten; sums the digits of a number; reverses the
digits of a number; checks for an Armstrong number; checks for a perfect number; draws Pascal's triangle; converts
seconds to hours and minutes; turns a list into a comma separated sentence; retries a call three times; measures how
long a call takes; caches results; deep copies a nested structure; compares two versions; parses a query string;
builds a query string; parses a CSV line; reads a value by a dotted path; inverts a mapping; picks some keys of a
mapping
""")
CLASSES = _items("""
a bank account; a shopping basket; a stack; a queue; a linked list; a binary tree; a playlist; a library of books; a
to-do list; a deck of cards; a timer; a counter; a rectangle; a circle; a vector; a fraction; a matrix; a bank
customer; a student with grades; an employee; a car; a parking garage; a vending machine; a traffic light; a
thermostat; a pet; an inventory; an address book; a recipe; a quiz; a chess board; a tic-tac-toe game; a dice cup; a
cache; a rate limiter; an event emitter; a logger; an undo history; a ticket system; a calendar
""")
PYTHON_SCRIPTS = _items("""
renames all files in a folder; lists the biggest files; counts the lines of all .py files; reads a CSV file and
prints a column; sums a column of a CSV file; converts a CSV file to JSON; merges two text files; finds duplicate
files; makes a backup of a folder; deletes empty folders; prints a directory tree; watches a file for changes;
downloads a page; reads settings from a TOML file; writes a log file; parses command line arguments; asks for a name
and greets the user; runs a quiz in the terminal; shows a countdown; prints the calendar of a month; sends a request
to an API; reads a JSON file and sorts it; searches for a word in many files; replaces a word in a file; zips a
folder; splits a big file; counts words in a text file; draws a bar chart with characters; stores notes in SQLite;
creates a table in SQLite; uses a generator to read a big file; uses a decorator to log calls; uses a context
manager to time a block; uses a dataclass for a point; uses regular expressions to find dates; uses threads to fetch
pages; uses asyncio to wait for tasks; tests a function with pytest; simulates a random walk; estimates pi with
random numbers
""")
JS_SCRIPTS = _items("""
shows an alert on a button click; toggles a dark theme; validates a form; adds items to a list on the page; removes
an item from a list on the page; counts clicks; shows a live clock; shows a countdown; fetches data and shows it in
a table; filters a table while typing; sorts a table by column; saves a note in local storage; reads a cookie; opens
and closes a menu; makes a slideshow; shows a tooltip; copies text to the clipboard; scrolls to the top; lazy loads
pictures; debounces an input; throttles scrolling; draws a circle on a canvas; moves a square with the arrow keys;
makes a simple calculator; makes a to-do app; shows a progress bar; shows a random quote; checks whether an element
is visible; uploads a file with fetch; reads a file that the user chose; waits for two promises; uses async and
await; starts a server with Node; reads a file with Node; writes a JSON file with Node; lists a folder with Node;
makes a route with Express; uses a Set to remove duplicates; uses map and filter; uses reduce to group objects;
clones an object; destructures an object; listens for key presses; makes a stopwatch; changes the page title
""")
CODE_ASKS = _items("""
Add comments; Keep it short; Add an example; Use clear names; Explain it briefly; No explanation, just code; Handle
empty input; Add a small test; Raise an error on bad input; Explain each step
""")

#: Things as JSON, with the fields that fit.
OBJECTS = _items("""
a book: title, author, year, pages; a film: title, director, year, rating; a song: title, artist, length; an album:
title, artist, tracks; a recipe: name, ingredients, steps; a cake order: flavour, size, date; a coffee order: drink,
size, milk; a pizza: name, toppings, price; a restaurant: name, address, cuisine; a menu: starters, mains, desserts;
a customer: name, email, city; a user profile: username, age, interests; an employee: name, role, salary; a student:
name, age, subjects; a teacher: name, subject, room; a school: name, classes, address; a course: title, lessons,
teacher; a quiz question: question, options, answer; an exam result: student, subject, grade; a pet: name, species,
age; a dog: name, breed, weight; a zoo animal: name, species, diet; a plant: name, light, water; a garden bed: name,
plants, size; a tree: species, height, age; a car: make, model, year; a bicycle: brand, gears, colour; a train
ticket: from, to, seat; a flight: number, departure, arrival; a hotel booking: guest, nights, room; a holiday plan:
destination, days, budget; a city: name, country, population; a country: name, capital, languages; a river: name,
length, mouth; a mountain: name, height, country; a planet: name, radius, moons; a star: name, distance, type; a
weather report: city, temperature, wind; a forecast: day, high, low; a sensor reading: id, value, unit; a phone:
model, storage, price; a laptop: model, memory, price; a product: name, price, stock; a shopping list: items, shop;
an invoice: number, lines, total; a receipt: shop, items, total; a payment: amount, currency, date; a bank account:
owner, number, balance; a budget: income, rent, food; a parcel: sender, receiver, weight; a delivery: address, date,
status; an address: street, city, postcode; a contact: name, phone, email; a calendar event: title, start, end; a
meeting: topic, people, time; a task: title, due, done; a to-do list: name, tasks; a project: name, members,
deadline; a ticket: id, title, status; a bug report: title, steps, severity; a log entry: time, level, message; a
settings file: theme, language, volume; a server: host, port, protocol; an API response: status, data, error; an
error message: code, text; a blog post: title, author, tags; a comment: author, text, likes; a news article:
headline, date, section; a podcast: title, host, episodes; a playlist: name, songs; a video: title, length, views; a
game character: name, class, level; a weapon in a game: name, damage, weight; a monster: name, health, attacks; a
chess game: white, black, result; a football match: home, away, score; a football player: name, team, goals; a team:
name, coach, players; a race result: runner, time, place; a workout: exercise, sets, reps; a gym member: name, plan,
since; a doctor's appointment: patient, doctor, time; a medicine: name, dose, times; a museum: name, city, hours; a
painting: title, painter, year; a sculpture: title, artist, material; a concert: band, place, date; an instrument:
name, family, strings; a job advert: title, company, salary; a job application: name, position, skills; a CV: name,
education, experience; a company: name, founded, staff; a warehouse: location, shelves, capacity; a factory machine:
name, status, hours; a robot: name, battery, tasks; a drone: model, range, camera; a spaceship: name, crew,
destination; an element: symbol, number, mass; a chemical: name, formula, hazard; a bird sighting: species, place,
time; a fish tank: size, fish, temperature; a house: rooms, area, price; a room: name, width, length; a chair:
material, colour, legs; a shirt: size, colour, fabric; a shoe: brand, size, price; a gift card: code, value, expiry;
a survey: question, answers, votes; an election result: candidate, votes, share; a library loan: book, reader, due;
a bus line: number, stops, interval; a parking space: number, taken, plate; a voucher: code, discount, valid; a
lesson plan: topic, goals, time; a word entry: word, meaning, example; a translation: source, target, language
""")
JSON_ASKS = _items("""
Only output the JSON; No other text; Use double quotes; Make up the values; Use realistic values; Indent with two
spaces; Add an id field; Include a nested object; Keep it on one line; Use null for unknown values
""")

OPENERS = _items("""
how are you today?; what can you do?; what's your name?; who made you?; are you a real person?; do you ever sleep?;
can you tell me a joke?; tell me something interesting; tell me a fun fact; I'm bored; I can't sleep; I had a great
day; I had a rough day; what should I do this weekend?; what should I have for dinner?; what should I read next?;
can you cheer me up?; can you keep a secret?; what is the meaning of life?; do you like music?; do you have a
favourite colour?; are you smarter than me?; will robots take over?; give me some advice; say something nice;
surprise me; let's play a game; ask me a riddle; ask me anything; can we just talk?; I need some motivation; I feel
a bit lonely today; I got the job!; I passed my exam!; I just moved to a new city; I'm learning to cook; I adopted a
cat; it's raining again; it's so hot today; happy Friday!; I'm on holiday next week; my team lost last night; I
think I'm getting a cold; my train is late again; I'm stuck in a boring meeting; I forgot my umbrella; I burned my
dinner; what makes people happy?; what would you do with a million dollars?; where would you travel?; is it ever OK
to lie?; what makes a good friend?; do aliens exist?; coffee or tea?; cats or dogs?; mountains or beach?; early bird
or night owl?; what's a good habit to start?; do you remember what I said yesterday?; can you help me?
""")
GREETINGS = _items(
    "Hi,; Hello,; Hey,; Hey there,; Good morning,; Good evening,; Hiya,; hi; hello; ok so,; Quick one:; yo"
)
SITUATIONS = _items("""
my roommate never washes up; my neighbour plays loud music at night; my best friend stopped answering my messages;
my boss gives me too much work; my colleague takes credit for my ideas; I have two job offers; I am nervous about an
interview; I start a new job on Monday; I hate my job but it pays well; I have to give a speech at a wedding; I
forgot my sister's birthday; my brother owes me money; my parents do not like my partner; my son does not want to do
his homework; my daughter wants a phone; my dog barks when I leave; my cat scratches the sofa; I cannot wake up on
time; I stay up too late; I look at my phone too much; I want to stop eating sweets; I want to start running; I want
to lose a little weight; I have back pain from sitting; I get headaches from my screen; I am always tired after
lunch; I want to read more; I want to learn the guitar; I am learning English; I want to learn Spanish before my
holiday; I am bad at maths; I have an exam in two weeks; I keep putting off my essay; I do not know what to study; I
want to change careers at forty; I cannot save any money; I spend too much on take-away food; I want to buy my first
car; I am moving in with my partner; I am moving abroad; I feel homesick; I do not know anyone in this town; I find
small talk hard; I am too shy to speak up; I said something stupid at a party; I had a fight with my best friend; my
friend is going through a break-up; my grandmother is lonely; my co-worker talks all day; I have to tell a friend
bad news; I was invited to a party and do not want to go; I do not know what to wear to a wedding; I have to cook
for six people; I am allergic to my friend's cat; my plants keep dying; my flat is always messy; my kitchen is tiny;
my laptop is very slow; I dropped my phone in water; I lost my wallet; I missed my flight; I am afraid of flying; I
am afraid of the dentist; I worry about everything; I compare myself to others; I get angry in traffic; I never
finish what I start; I work from home and feel isolated; I am retiring next year; I have a free week and no plans; I
have a long train ride ahead; I want to write a book; I want to start a podcast; I want to open a small shop; I want
to grow tomatoes on a balcony; I want to go camping for the first time; I want to get a puppy; I want to surprise my
partner; I need a present for my dad; it rains and the kids are bored
""")
ASKS = _items("""
What should I do?; Any advice?; Any tips?; How do I handle this?; Can you help?; What would you do?; How do I
start?; Where do I begin?; Is that normal?; Please help me; What do you suggest?; Give me three tips; Any ideas?; I
need a plan; Be honest with me; What is the first step?; How do other people deal with this?; Keep it short please;
thoughts?; help
""")
SMALL_TALK = _items("""
cooking; long walks; rainy Sundays; old films; board game nights; train journeys; gardening at home; street food;
learning languages; science; cycling; swimming; camping trips; winter; summer evenings; autumn leaves; the sea;
mountains; big cities; small villages; pets; birdwatching; painting; photography walks; poetry; detective novels;
comics; video games; pop music; classical music; dancing; karaoke; baking bread; breakfast; coffee shops; vegetarian
food; spicy food; chocolate cake; early mornings; long flights; road trips; museums; space travel; robots; time
travel; ghosts; dreams at night; luck; friendship; growing up; school days; first jobs; working from
home; social media; birthdays; family dinners; holidays at home; fashion; homework; handwriting; puzzles; magic
tricks; jokes
""")

#: Texts to summarise and to damage, of 50 to 110 words; a blank line stands between two.
PASSAGES = _paragraphs("""
The old bridge at Harlow closed last spring after engineers found cracks in two of its supports. Drivers now take a
detour of six miles, which adds about a quarter of an hour to most trips. The council says repairs will begin in June
and last until the end of the year. Shop owners near the bridge are worried, because fewer people pass their doors.
They've asked for a temporary footbridge so that customers can still walk across.

Maria has kept bees on the roof of her office for three years. She started with one hive and now looks after five. Her
colleagues were nervous at first, but nobody has been stung. In summer the bees visit the lime trees along the river,
and their honey has a light, minty taste. Every autumn she fills sixty small jars and gives one to each person in the
building.

Most people charge their phones overnight, but that isn't always best for the battery. Lithium batteries last longer
when they're kept between twenty and eighty percent. Heat is a bigger problem than the number of charges. A phone left
on a sunny windowsill can lose capacity in a single summer. Many phones now learn a daily routine and wait with the
last part of the charge until shortly before the alarm rings.

The swimming club has decided to change its training times from next month. Beginners will meet on Monday and
Wednesday at five o'clock. The advanced group will swim on Tuesday and Friday mornings before school. Parents can
watch from the café, but they aren't allowed beside the pool. Anyone who can't come at the new times should speak to
the coach before the end of the week.

Sea otters spend almost their whole lives in the water. They don't have a thick layer of fat, so they rely on the
densest fur of any animal. An otter eats about a quarter of its weight every day to stay warm. It floats on its back
and cracks shells on a stone that it keeps under one arm. When otters sleep, they wrap themselves in kelp so that the
current doesn't carry them away.

When my grandfather was ten, he walked four miles to school in all weathers. He carried a potato in each pocket to
keep his hands warm. At noon the teacher baked the potatoes on the stove, and that was lunch. He liked arithmetic and
hated singing. Seventy years later he could still recite the names of every child in his class and tell us where each
of them had gone.

The first weeks in a new job are often tiring, even when everything goes well. There are names to remember, systems to
learn and habits to notice. It helps to write things down, since nobody can keep it all in mind. Asking questions
early is better than guessing for months. Most colleagues are glad to help someone who listens. After a while the
strange building becomes familiar, and the days feel shorter.

Our town library lends more than books. Members can borrow a drill, a sewing machine, a tent or a telescope for two
weeks. The idea came from a reader who needed a ladder only once a year. Local people gave most of the tools, and a
retired mechanic checks each one when it comes back. Last year the collection was used nine hundred times. The
librarians say it's the best thing they've ever started.

Rice grows well in flooded fields because the water keeps weeds down. The young plants are raised in a nursery and
moved when they are about a hand high. Farmers drain the field a few weeks before the harvest so that the ground can
carry people and machines. Growing rice this way needs a great deal of water. Scientists are testing methods that let
the soil dry from time to time, which also cuts methane.

The museum's new show tells the story of the city through its shop signs. There are painted boards, gilded letters and
a large iron boot that once hung above a cobbler's door. Visitors can hear recordings of people who remember the
shops. The oldest sign is nearly three hundred years old. It was found behind a wall when a bakery was rebuilt. The
show stays open until March, and children don't pay.

Tom wanted to repair his bicycle without spending much money. He watched a few videos, bought a set of spanners and
borrowed a pump. The brakes were easy, but the gears took him a whole afternoon. He put the chain on backwards twice.
By evening the bike was running quietly, and he was very proud. The next morning he noticed two small screws on the
floor and couldn't say where they belonged.

A heat pump works like a refrigerator turned around. It takes warmth from the air or the ground outside and moves it
into the house. Even cold air holds some heat, so the method works in winter too. Because it moves heat rather than
making it, a pump can deliver three units of warmth for each unit of electricity. It works best in a house that's well
insulated and has large radiators.

The orchestra was late because its bus broke down on the motorway. The audience waited for almost two hours, and
someone began to play the piano in the foyer. Soon people were singing together. When the musicians finally arrived,
they didn't change into their black clothes. They sat down in coats and scarves and played the whole programme. Many
listeners said afterwards that it was the finest concert they'd ever heard.

Paper money was first used in China about a thousand years ago. Merchants didn't want to carry heavy strings of coins
on long journeys, so they left them with a trusted house and took a receipt. After some time the receipts themselves
went from hand to hand. The government saw how useful they were and began to print its own. It also learned that
printing too many notes makes each of them worth less.

The hiking path starts behind the church and climbs gently through beech woods. After an hour you reach a meadow with
a spring, where it's pleasant to rest. From there the way becomes steep and stony. Good shoes are necessary, and you
shouldn't go when the ground is wet. The hut at the top serves soup and cake from May to October. On clear days you
can see the sea from its terrace.

Teenagers need about nine hours of sleep, yet many get fewer than seven. Their inner clock shifts during these years,
so they feel awake late in the evening. Early school hours then cut the night short. Some schools have tried starting
at nine, and the results are encouraging. Pupils were more alert, and there were fewer accidents on the road. Parents,
however, had to rearrange their own mornings, and buses had to be planned again.

The company sold twice as many electric scooters this year as last year. Profit grew less quickly, because batteries
became more expensive. The director told investors that a second factory would open in Portugal in the autumn. It will
employ four hundred people and make parts that are now bought from other firms. She didn't promise a dividend. Shares
fell a little in the morning and recovered before the market closed.

To make a simple vegetable soup, begin with an onion and a little oil. Cook the onion slowly until it's soft, but
don't let it brown. Add carrots, celery and a potato, all cut small, and cover them with water. A bay leaf gives the
soup more depth. After twenty minutes, taste it and add salt. You can blend half of it to make it creamy and leave the
rest in pieces.

The storm reached the island shortly after midnight. Trees fell across the only road, and half of the houses lost
power. The ferry stayed in the harbour for two days. Neighbours cooked together on camping stoves before the food in
their freezers could spoil. Nobody was hurt. The school was opened for families whose roofs had been damaged, and the
children thought it was an adventure to sleep in their own classroom.

Learning to draw is mostly learning to see. Beginners draw what they know and not what is in front of them. They put
eyes too high on the face, since they think of the forehead as empty. A useful exercise is to turn a photograph upside
down and copy it. The brain then stops naming the parts and follows the lines instead. Ten minutes each day do more
than a long session once a month.

The village of Oakmere has one shop, and it nearly closed last winter. The owner wanted to retire and couldn't find
anyone to take over. Then forty families put in two hundred pounds each and bought it together. They take turns behind
the counter. The shop sells bread, stamps, local cheese and whatever people have too much of in their gardens. It
doesn't make much profit, but it hasn't lost money either.

Satellites in low orbit circle the earth in about ninety minutes. They meet a little air even there, which slowly
pulls them down. Without small engines to lift them, they would burn up after some years. Old satellites and lost
parts are a growing danger, because even a screw can destroy a working craft at such speed. Engineers are testing
nets, harpoons and robot arms to remove the largest pieces before they break apart.

My sister is moving to Lisbon in September to study architecture. She found a room in an old building with a view of
the river. There's no lift, and her flat is on the fifth floor. She's selling her car and most of her furniture. Our
parents are sad, but they have already booked a trip for November. I'm going to miss our Sunday breakfasts more than I
want to admit.

Many gardeners water their plants a little every evening. It's better to water deeply twice a week. Roots follow
moisture, so shallow watering keeps them close to the hot surface. The early morning is the best time, because less
water evaporates and the leaves dry quickly. A layer of straw or bark keeps the soil damp. If a plant droops at noon
but recovers at night, it usually doesn't need more water.

The film follows a lorry driver who finds a child asleep in his cabin. She won't tell him her name, and he's already
late with his delivery. They cross three countries together and slowly begin to trust each other. The pictures are
beautiful, and the two actors are excellent. The last half hour is too long, though, and the ending explains what we
have understood already. Still, it's worth seeing on a large screen.

Cities are planting more trees because summers are becoming hotter. A large tree cools the street beneath it by
several degrees. It also holds back rain that would otherwise flood the drains. Young trees need care for their first
five years, and many die from lack of water. Some towns therefore ask residents to adopt one. Each tree carries a
small sign with the name of the person who looks after it.

The first lighthouse on this rock was built of wood and lasted only four winters. The second was made of stone blocks
that lock together like a puzzle. Its light could be seen from eighteen miles away. Three keepers lived there at a
time, and they weren't always friends. In bad weather no boat could land for weeks. Since 1982 the lamp has been
automatic, and only birds and engineers visit the tower.

Running a marathon takes months of preparation. Most plans begin with three short runs each week and one longer one.
The long run grows by about a mile at a time. Rest is part of the training, because muscles become stronger while they
recover. Many beginners start too fast on the day itself, and they're exhausted after twenty miles. Those who hold
back at the beginning often overtake hundreds of people at the end.

The school kitchen used to throw away forty kilos of food a day. A group of pupils weighed the waste for a month and
made a chart. They found that most of it was salad and that portions were too large for the youngest children. Now
everyone chooses a small, medium or large plate. The waste has dropped by half. The money that's saved pays for fresh
fruit in the breaks.

Cats were probably not tamed on purpose. When people began to store grain, mice came, and the cats followed the mice.
The boldest cats stayed near the houses and had more kittens. People noticed that they were useful and left them in
peace. Unlike dogs, cats have changed little since then. Their bodies and most of their habits are still those of the
small wild hunters that walked into the first villages.

The online shop promised delivery in two days, but the parcel arrived after three weeks. The box was open, and one of
the cups was broken. I wrote to the company and sent photographs. Their answer came within an hour and was very kind.
They didn't ask me to send anything back and paid for the whole set. I was angry before, but I'm going to order from
them again.

Glass can be recycled again and again without losing quality. It's sorted by colour, crushed, cleaned and melted at
about fifteen hundred degrees. Using old glass saves sand, soda and a good part of the energy. Drinking glasses and
window panes mustn't go into the same container, because they melt at different temperatures. Even a small piece of a
coffee cup can weaken a new bottle. Lids should be taken off first.

The town council met on Tuesday to discuss the empty cinema in Mill Street. One group would like to turn it into a
market hall. Another hopes for a theatre with a small stage and a bar. Both plans cost more than the town has. The
mayor suggested that the building should be opened for one summer, so that people can try out their ideas. A decision
is expected in February.

Chess was already old when it came to Europe. It began in India, and traders and soldiers carried it through Persia to
the west. The pieces changed along the way. The queen, once a weak adviser, became the strongest piece about five
hundred years ago. The game became faster, and players began to write books about openings. Today computers play
better than anyone, yet more people than ever play each other.

Our train stopped in the middle of a field, and the lights went out. At first everyone looked at their phones. After
an hour a woman shared her sandwiches, and an old man told stories about working on steam engines. A child asked him
so many questions that he drew a boiler on the back of his ticket. When we moved again, some people seemed almost
sorry. We'd become a small village.

Coral reefs cover less than one percent of the sea floor, but a quarter of all sea fish live on them. The coral
animals depend on tiny algae that live inside them and give them food and colour. When the water gets too warm, the
algae leave and the coral turns white. It isn't dead yet, and it can recover if the water cools soon. If the heat
returns every year, it doesn't have enough time.

The workshop teaches people to mend their own clothes. On the first evening we learn to sew on buttons so that they
stay. Later we patch elbows, darn socks and shorten trousers. You don't need a machine, and needles and thread are
provided. Please bring something that you'd like to save. There are ten places, and they go quickly. The course costs
thirty pounds, or fifteen if you're a student or out of work.

Pencils don't contain lead and never did. When a large deposit of graphite was found in England, people thought that
it was a kind of lead, and the name stayed. Pure graphite is soft and breaks easily. A French inventor mixed the
powder with clay and baked it in an oven. More clay makes the pencil harder and its line lighter. That's why pencils
carry letters and numbers that tell artists what to expect.

The two brothers haven't spoken since their father sold the farm. Peter had wanted to keep it, while Daniel needed the
money for his clinic. Their mother invited both of them to her eightieth birthday without telling either. They sat at
opposite ends of the table and talked to the cousins. Then the lights failed, and they had to look for the fuse box
together. Nobody knows what was said in the cellar.

A good password is long rather than complicated. Four or five ordinary words in a row are easy to remember and hard to
guess. The same password shouldn't be used twice, since one careless website is enough to open all doors. A password
manager stores them and fills them in. It's also wise to switch on a second step, such as a code from an app. Most
attacks stop there.

The bakery opens at six, but the work begins at two in the morning. The dough was mixed the evening before and has
been rising slowly in the cold. Anna shapes the loaves while her husband heats the oven with beech wood. They don't
talk much. By four the first bread comes out, and its smell fills the street. Their earliest customers are nurses on
the way home from the night shift.

Penguins can't fly, but they swim as if they were flying. Their wings have become stiff flippers, and their bones are
heavy enough to help them dive. A thick coat of short feathers keeps them warm and dry. On land they look clumsy, and
they often slide on their bellies to save effort. Parents find their own chick among thousands by its voice. They
learn to know its call in the first days.

The new tram line has changed how people travel in the north of the city. Before it opened, two out of three drove to
work. Now it's fewer than half. Rents near the stops have risen, which isn't good news for everyone. Some small shops
have closed, while cafés and offices have moved in. The council wants to build cheaper flats along the second line,
and it has bought land early this time.

Salt was once so precious that soldiers and workers were sometimes paid in it. It kept meat and fish from spoiling
when there were no refrigerators. Whole towns grew rich because they stood near a mine or a salt lake. Governments
taxed it, and people smuggled it across borders at night. Today it's one of the cheapest things in the kitchen, and
doctors tell us that we're eating too much of it.
""")

FIELDS: Mapping[str, tuple[str, ...]] = {
    "noun": NOUNS,
    "clause": CLAUSES,
    "pair": PAIRS,
    "character": CHARACTERS,
    "place": PLACES,
    "problem": PROBLEMS,
    "genre": GENRES,
    "theme": LIST_THEMES,
    "count": COUNTS,
    "audience": AUDIENCES,
    "aim": EMAIL_AIMS,
    "recipient": RECIPIENTS,
    "tone": TONES,
    "function": FUNCTIONS,
    "class": CLASSES,
    "py_script": PYTHON_SCRIPTS,
    "js_script": JS_SCRIPTS,
    "code_ask": CODE_ASKS,
    "object": OBJECTS,
    "thing": tuple(item.partition(":")[0] for item in OBJECTS),
    "json_ask": JSON_ASKS,
    "opener": OPENERS,
    "greeting": GREETINGS,
    "situation": SITUATIONS,
    "ask": ASKS,
    "talk": SMALL_TALK,
}
