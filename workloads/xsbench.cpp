// Monte-Carlo cross-section lookups (in the manner of XSBench, history of independent lookups):
// a random energy is found in the unionised energy grid, whose index row says where it lies in the
// grid of each nuclide of a random material. Random reads all over index_grid and nuclide_grid.
// Verified: sampled lookups give the same with a search in each nuclide's own grid.
#include "truth.hpp"

using namespace tierloom;

// The Hoogenboom-Martin reactor as in XSBench, small: 68 nuclides, 12 materials, of which the
// fuel has 34; how often a neutron is in each material. The nuclides' numbers are ours.
constexpr std::size_t NUCLIDES = 68, MATERIALS = 12, REACTIONS = 5;
constexpr std::array<std::size_t, MATERIALS> CONTENT = {34, 5, 4, 4, 27, 21, 21, 21, 21, 21, 9, 9};
constexpr std::array<double, MATERIALS> CHANCE = {.140, .052, .275, .134, .154, .064,
                                                  .066, .055, .008, .015, .025, .013};

struct Point {
    double energy;
    double cross_section[REACTIONS];
};

ALLOCATED(nuclide_grid)
ALLOCATED(energy_grid)
ALLOCATED(index_grid)

// Each nuclide's energies ascend: a point in each of `points` equal intervals.
KERNEL void fill_nuclides(Point* grid, std::size_t points, std::uint64_t seed, std::size_t begin,
                          std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
        Random random(seed + p);
        grid[p].energy =
            (static_cast<double>(p % points) + random.uniform()) / static_cast<double>(points);
        for (double& value : grid[p].cross_section)
            value = random.uniform();
    }
}

// Merges the nuclides' energies; an index row holds each nuclide's last point not above the energy
// (its first where all are above).
KERNEL void unionise(const Point* grid, std::size_t points, double* energy_grid,
                     std::uint32_t* index_grid) {
    std::array<double, NUCLIDES> head;
    std::array<std::uint32_t, NUCLIDES> next{};
    for (std::size_t n = 0; n < NUCLIDES; ++n)
        head[n] = grid[n * points].energy;
    for (std::size_t row = 0; row < NUCLIDES * points; ++row) {
        std::size_t least = 0;
        for (std::size_t n = 1; n < NUCLIDES; ++n)
            least = head[n] < head[least] ? n : least;
        energy_grid[row] = head[least];
        const std::size_t following = ++next[least];
        head[least] = following < points ? grid[least * points + following].energy : 2;
        for (std::size_t n = 0; n < NUCLIDES; ++n)
            index_grid[row * NUCLIDES + n] = next[n] > 0 ? next[n] - 1 : 0;
    }
}

struct Lookup {
    double energy;
    std::size_t material;
    explicit Lookup(std::uint64_t seed) {
        Random random(seed);
        energy = random.uniform();
        double roll = random.uniform();
        for (material = 0; material + 1 < MATERIALS && roll >= CHANCE[material]; ++material)
            roll -= CHANCE[material];
    }
    // The i-th nuclide of the material and how much there is of it.
    std::size_t nuclide(std::size_t i) const {
        return material == 0 ? i : (material * 17 + i * 5) % NUCLIDES;
    }
    double density(std::size_t i) const { return 1.0 / static_cast<double>(1 + i + material); }
};

// The five cross sections at an energy between two points of a nuclide's grid, summed up.
static double interpolate(const Point& low, const Point& high, double energy) {
    const double top = high.energy, share = (top - energy) / (top - low.energy);
    double sum = 0;
    for (std::size_t r = 0; r < REACTIONS; ++r) {
        const double above = high.cross_section[r];
        sum += above - share * (above - low.cross_section[r]);
    }
    return sum;
}

struct Tally {
    double sum = 0;
    std::uint64_t steps = 0, nuclides = 0; // of the searches; looked up
    Tally& operator+=(const Tally& other) {
        sum += other.sum;
        steps += other.steps;
        nuclides += other.nuclides;
        return *this;
    }
};

KERNEL Tally look_up(const Point* grid, std::size_t points, const double* energy_grid,
                     const std::uint32_t* index_grid, std::uint64_t seed, std::size_t begin,
                     std::size_t end) {
    Tally tally;
    for (std::size_t l = begin; l < end; ++l) {
        const Lookup lookup(seed + l);
        std::size_t row = 0;
        for (std::size_t length = NUCLIDES * points; length > 1; ++tally.steps) {
            const std::size_t half = length / 2;
            row = energy_grid[row + half] <= lookup.energy ? row + half : row;
            length -= half;
        }
        const std::size_t count = CONTENT[lookup.material];
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t nuclide = lookup.nuclide(i);
            std::size_t low = index_grid[row * NUCLIDES + nuclide];
            low = low + 1 < points ? low : points - 2;
            const Point* point = &grid[nuclide * points + low];
            tally.sum += lookup.density(i) * interpolate(point[0], point[1], lookup.energy);
        }
        tally.nuclides += count;
    }
    return tally;
}

// The same without the unionised grid: a search in each nuclide's own energies.
KERNEL Tally look_up_plainly(const Point* grid, std::size_t points, std::uint64_t seed,
                             std::size_t begin, std::size_t end) {
    Tally tally;
    for (std::size_t l = begin; l < end; ++l) {
        const Lookup lookup(seed + l);
        const std::size_t count = CONTENT[lookup.material];
        for (std::size_t i = 0; i < count; ++i) {
            const Point* own = grid + lookup.nuclide(i) * points;
            std::size_t low = 0;
            for (std::size_t length = points; length > 1; ++tally.steps) {
                const std::size_t half = length / 2;
                low = own[low + half].energy <= lookup.energy ? low + half : low;
                length -= half;
            }
            low = low + 1 < points ? low : points - 2;
            tally.sum += lookup.density(i) * interpolate(own[low], own[low + 1], lookup.energy);
        }
        tally.nuclides += count;
    }
    return tally;
}

int main(int argc, char** argv) {
    const Options options = parse(
        argc, argv,
        {"Monte-Carlo cross-section lookups", "grid points a nuclide", 11303, 50, 100'000, 6});
    const std::size_t points = options.size, rows = NUCLIDES * points, lookups = rows / 4;
    Ledger ledger("xsbench", options);
    const auto nuclide_grid = ledger.heap<Point>("nuclide_grid", alloc_nuclide_grid, rows);
    const auto energy_grid = ledger.heap<double>("energy_grid", alloc_energy_grid, rows);
    const auto index_grid =
        ledger.heap<std::uint32_t>("index_grid", alloc_index_grid, rows * NUCLIDES);
    in_blocks(rows, [&](auto begin, auto end, auto) {
        fill_nuclides(nuclide_grid.data(), points, options.seed << 32, begin, end);
    });
    nuclide_grid.writes<double>(rows * (1 + REACTIONS));
    unionise(nuclide_grid.data(), points, energy_grid.data(), index_grid.data());
    nuclide_grid.reads<double>(rows), energy_grid.writes(rows), index_grid.writes(rows * NUCLIDES);

    // Lookups begin to end of a round, booked.
    const auto run = [&](std::uint64_t seed, std::size_t count) {
        const Tally tally = sum_blocks<Tally>(count, [&](auto begin, auto end, auto) {
            return look_up(nuclide_grid.data(), points, energy_grid.data(), index_grid.data(), seed,
                           begin, end);
        });
        energy_grid.reads(tally.steps), index_grid.reads(tally.nuclides);
        nuclide_grid.reads<double>(tally.nuclides * 2 * (1 + REACTIONS));
        return tally.sum;
    };

    ledger.enter(MAIN);
    double sum = 0;
    std::uint64_t seed = ~options.seed << 32;
    for (Rounds rounds(options); rounds.next(); seed += lookups)
        sum += run(seed, lookups);

    ledger.enter(CHECK);
    const std::size_t sampled = lookups / 16;
    const Tally plain = sum_blocks<Tally>(sampled, [&](auto begin, auto end, auto) {
        return look_up_plainly(nuclide_grid.data(), points, seed, begin, end);
    });
    nuclide_grid.reads<double>(plain.steps + plain.nuclides * 2 * (1 + REACTIONS));
    return ledger.finish(sum, plain.sum == run(seed, sampled));
}
